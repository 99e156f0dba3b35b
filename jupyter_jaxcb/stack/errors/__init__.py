"""Bring exceptions of host functions back to the user.

`_host_call` keeps an exception in `_store` and puts its number into the error raised into XLA.
`_causes` attaches the exception to the error that JAX raises. `_excepthooks`, `_monitoring` and
`_tracebacks` decide what the user sees.
"""

from ._causes import EndedError as EndedError
from ._causes import NotCalledError as NotCalledError
from ._causes import forget_error as forget_error
from ._causes import stop_attaching_causes as stop_attaching_causes
from ._error_text import add_note as add_note
from ._error_text import attribute_of as attribute_of
from ._error_text import describe as describe
from ._error_text import is_a as is_a
from ._error_text import message_of as message_of
from ._error_text import raise_interrupt as raise_interrupt
from ._excepthooks import show as show
from ._host_call import HostCallError as HostCallError
from ._host_call import expect_error_of_jax as expect_error_of_jax
from ._host_call import failed_on_another_device as failed_on_another_device
from ._host_call import host_call_error as host_call_error
from ._host_call import set_cell_namer as set_cell_namer
from ._store import KeptError as KeptError
from ._store import error_by_number as error_by_number
from ._store import error_for_user as error_for_user
from ._store import failed_while as failed_while
from ._store import failing_while as failing_while
from ._store import host_error as host_error
from ._store import running_now as running_now
from ._store import set_running_reporter as set_running_reporter
from ._strict import strict_errors as strict_errors
from ._tracebacks import refused_frames as refused_frames
