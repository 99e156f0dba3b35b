"""``record()``, and the host calls that are running now.

`_listening` activates and removes the recorder; `_running` finds running calls on thread stacks.
"""

from ._listening import Listening as Listening
from ._listening import start as start
from ._listening import stop as stop
from ._record import Record as Record
from ._record import RecordBlock as RecordBlock
from ._record import Unrecorded as Unrecorded
from ._record import drain as drain
from ._record import environment as environment
from ._record import is_off as is_off
from ._record import record as record
from ._running import RunningCall as RunningCall
from ._running import all_running_calls as all_running_calls
from ._running import running_calls as running_calls
from ._running import still_running as still_running
from ._running import warn_of_running as warn_of_running
