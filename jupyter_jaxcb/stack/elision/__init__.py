"""Determine the status of each bind in a compiled program: kept, hoisted, deduplicated, removed.

`_programs` watches JAX lower and compile, and collects `_evidence`: the jaxpr (`_paths`), the binds
that JAX dropped (`_dropped`) and the optimized HLO (`_hlo`). `_rules` is the table that decides
from the evidence, with `_hoisting` and `_predicates`; `_outcomes` makes the outcome. `_operations`
names the operations of a program for a profile.
"""

from ._evidence import HostCallIndex
from ._operations import Operation, operations, program_number, without_number
from ._programs import (
    all_counted,
    bound,
    executed,
    lowered,
    unwatch,
    unwatch_compilations,
    watch,
    watch_compilations,
    watch_own,
)
