"""Record, observe, profile, explain and check host calls, and watch values.

Host calls do not depend on anything in this package.
"""

from .check import check
from .explain import explain, explain_matrix
from .hang import (
    INTERRUPTED,
    CtrlC,
    Hang,
    HangKind,
    SignalThread,
    Watchdog,
    explain_and_end,
    leave_at_next_interrupt,
    stacks_of_threads,
    watchdog,
    watchdog_and_timer,
    way_out,
)
from .observe import observe_jax, start_noting, start_observing, stop_noting, stop_observing
from .profile import Profiled, profile
from .record import (
    Listening,
    Record,
    RunningCall,
    all_running_calls,
    drain,
    environment,
    is_off,
    record,
    recording_so_far,
    running_calls,
    start,
    still_running,
    stop,
    unfinished_programs,
    warn_of_running,
)
from .watch import (
    Bad,
    Comparison,
    Difference,
    Row,
    Series,
    Watch,
    brief,
    details,
    title,
    watch,
    watching,
)
