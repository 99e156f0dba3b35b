"""Determine the status of each bind in a compiled program: kept, hoisted, deduplicated, removed.

`_programs` watches JAX lower and compile, and collects `_evidence`: the jaxpr (`_paths`), the binds
that JAX dropped (`_dropped`) and the optimized HLO (`_hlo`). `_outcomes` decides from the evidence,
with `_hoisting`. `_operations` names the operations of a program for a profile.
"""

from ._evidence import HostCallIndex as HostCallIndex
from ._operations import Operation as Operation
from ._operations import operations as operations
from ._operations import program_number as program_number
from ._operations import without_number as without_number
from ._programs import all_counted as all_counted
from ._programs import bound as bound
from ._programs import executed as executed
from ._programs import lowered as lowered
from ._programs import unwatch as unwatch
from ._programs import unwatch_compilations as unwatch_compilations
from ._programs import watch as watch
from ._programs import watch_compilations as watch_compilations
from ._programs import watch_own as watch_own
