"""One crossing: XLA calls Python, Python calls the host function, the result goes back to XLA.

This is the hot path. Read `_crossing` first. `_plan` says which capabilities make the calls, and
`_elements` orders the calls of looped vmaps.
"""

from ._arguments import Adapt, takes_flat_operands, to_arguments
from ._call_info import facts_of
from ._crossing import (
    Crossing,
    Parts,
    crossings_by_shard,
    looped_calls,
    parts_of_crossing,
    reporting_interrupts,
    single_call,
)
from ._elements import CollectedResults, Elements, ElementSchedule, Selection
from ._entry import starts_unchecked
from ._finite import finite_checker, record_values
from ._frames import (
    FINDERS,
    READERS,
    RECORDED_CALL,
    RECORDED_ELEMENTS,
    CallElsewhere,
    finds_calls,
    selects_in,
)
from ._observed_call import CallCount, RecordedCall, note_call_of, noted
from ._plan import (
    Build,
    CallPlan,
    MakeCalls,
    Select,
    crossing,
)
