"""Determine the status of each bind in a compiled program: kept, hoisted, deduplicated, removed.

`_programs` watches JAX lower and compile, and collects `_evidence`: the jaxpr (`_paths`), the binds
that JAX dropped (`_dropped`) and the optimized HLO (`_hlo`). `_rules` is the table that decides
from the evidence, with `_hoisting` and `_predicates`; `_outcomes` makes the outcome. `_operations`
names the operations of a program for a profile, and `_one_device` warns of results that JAX leaves
on one device.
"""

from ._evidence import HostCallIndex
from ._one_device import OneDeviceWarning, warn_of_one_device
from ._operations import Operation, operations, program_number, without_number
from ._programs import (
    all_counted,
    bound,
    executed,
    leaves_results_on_one_device,
    lowered,
    unwatch,
    unwatch_compilations,
    watch,
    watch_compilations,
    watch_own,
)
