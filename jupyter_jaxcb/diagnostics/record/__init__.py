"""``record()``, and the host calls that are running now.

`_listening` activates and removes the recorder; `_running` finds running calls on thread stacks.
"""

from ._listening import Listening, start, stop
from ._record import (
    Record,
    RecordBlock,
    Unrecorded,
    drain,
    environment,
    is_off,
    record,
    recording_so_far,
)
from ._running import (
    RunningCall,
    all_running_calls,
    calls_on_stack,
    running_calls,
    still_running,
    unfinished_programs,
    warn_of_running,
)
