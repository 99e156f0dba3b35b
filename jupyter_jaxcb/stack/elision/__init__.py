"""Determine the status of each bind in a compiled program: kept, hoisted, deduplicated, removed.

`_programs` watches JAX lower, compile and run programs. `_asked` finds the calls that the jaxpr
asks for, `_made` those that the optimized HLO makes, and `_verdict` compares the two. `_dropped`
knows the binds that JAX drops while it traces, `_identity` tells functions apart that are compiled
again, and `_one_device` warns of results that JAX leaves on one device. Read `_verdict` first.
"""

from ._compiling import STAGES
from ._made import Operation, operations, program_number, without_number
from ._one_device import OneDeviceWarning, warn_of_one_device
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
from ._verdict import HostCallIndex
