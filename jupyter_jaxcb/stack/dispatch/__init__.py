"""One crossing: XLA calls Python, Python calls the host function, the result goes back to XLA.

This is the hot path. Read `_crossing` first. `_plan` says which capabilities make the calls, and
`_elements` orders the calls of looped vmaps.
"""

from ._arguments import Adapt as Adapt
from ._arguments import takes_flat_operands as takes_flat_operands
from ._arguments import to_arguments as to_arguments
from ._crossing import Crossing as Crossing
from ._crossing import Parts as Parts
from ._crossing import checker_of as checker_of
from ._crossing import crossings_by_shard as crossings_by_shard
from ._crossing import looped_calls as looped_calls
from ._crossing import parts_of_crossing as parts_of_crossing
from ._crossing import reporting_interrupts as reporting_interrupts
from ._crossing import single_call as single_call
from ._elements import CollectedResults as CollectedResults
from ._elements import Elements as Elements
from ._elements import ElementSchedule as ElementSchedule
from ._elements import Selection as Selection
from ._entry import starts_unchecked as starts_unchecked
from ._finite import finite_checker as finite_checker
from ._finite import record_values as record_values
from ._frames import FINDERS as FINDERS
from ._frames import READERS as READERS
from ._frames import RECORDED_CALL as RECORDED_CALL
from ._frames import RECORDED_ELEMENTS as RECORDED_ELEMENTS
from ._frames import CallElsewhere as CallElsewhere
from ._frames import finds_calls as finds_calls
from ._observed_call import CallCount as CallCount
from ._observed_call import RecordedCall as RecordedCall
from ._observed_call import note_call_of as note_call_of
from ._observed_call import noted as noted
from ._plan import Build as Build
from ._plan import CallPlan as CallPlan
from ._plan import Select as Select
from ._plan import Stage as Stage
from ._plan import crossing as crossing
from ._plan import decides as decides
from ._plan import enters as enters
from ._plan import leaves_xla as leaves_xla
from ._plan import selects as selects
