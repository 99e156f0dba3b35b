"""Bring exceptions of host functions back to the user.

`_host_call` keeps an exception in `_store` and puts its number into the error raised into XLA.
`_causes` attaches the exception to the error that JAX raises. `_hooks` and `_tracebacks` decide
what the user sees.
"""

from ._causes import EndedError, NotCalledError, forget_error, stop_attaching_causes
from ._error_text import add_note, attribute_of, describe, is_a, message_of, raise_interrupt
from ._hooks import show
from ._host_call import (
    HostCallError,
    expect_error_of_jax,
    failed_on_another_device,
    host_call_error,
)
from ._store import (
    KeptError,
    error_by_number,
    error_for_user,
    failed_while,
    failing_while,
    host_error,
    running_now,
    set_running_reporter,
)
from ._strict import strict_errors
from ._tracebacks import refused_frames
