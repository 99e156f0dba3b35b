"""Record, observe, profile, explain, check and gather host calls.

Host calls do not depend on anything in this package.
"""

from .check import check as check
from .explain import explain as explain
from .explain import explain_matrix as explain_matrix
from .gather import gather as gather
from .observe import observe_jax as observe_jax
from .observe import start_noting as start_noting
from .observe import start_observing as start_observing
from .observe import stop_noting as stop_noting
from .observe import stop_observing as stop_observing
from .profile import Profiled as Profiled
from .profile import profile as profile
from .record import Listening as Listening
from .record import Record as Record
from .record import RunningCall as RunningCall
from .record import all_running_calls as all_running_calls
from .record import drain as drain
from .record import environment as environment
from .record import is_off as is_off
from .record import record as record
from .record import running_calls as running_calls
from .record import start as start
from .record import still_running as still_running
from .record import stop as stop
from .record import warn_of_running as warn_of_running
