"""The callback stack: primitives, rules, lowering and host dispatch.

Its packages, from the bottom up: `options`, `trace`; `call`; `errors`, `results`, `elision`;
`interrupt`; `dispatch`; `lowering`; `flavors`. While JAX traces and lowers, a call passes through
`flavors` and `lowering`; while the program runs, through `dispatch`. What registers itself in
their tables is in `capabilities`.
"""

from jupyter_jaxcb_worker import CallInfo, call_info

from ..jax_compat import leave_loops_to_jax
from .call import (
    HostFunction,
    Run,
    cell_begins,
    cell_ends,
    cell_known_as,
    check_leaves,
    did_you_mean,
    text_of,
)
from .elision import OneDeviceWarning, all_counted
from .errors import (
    HostCallError,
    add_note,
    attribute_of,
    error_for_user,
    failed_while,
    host_error,
    is_a,
    raise_interrupt,
    refused_frames,
    set_running_reporter,
    stop_attaching_causes,
    strict_errors,
)
from .flavors import debug_callback, debug_print, io_callback, pure_callback
from .flavors.buffer import RetainedBufferWarning, buffer_callback
from .flavors.taps import (
    CallbackException,
    barrier,
    barrier_at_exit,
    bind_tap,
    bind_tap_call,
    flags,
)
from .interrupt import InFlight, Stuck, interrupt, interrupt_main, on_thread_of_xla, release
from .options import FLAVORS, Options, rows
from .results import INFER, ResultError, ResultStructureWarning, exact_avals, nothing_in, scalar_of
from .trace import (
    disabled,
    frames_of_threads,
    is_below,
    is_cell,
    is_user_code,
    spent_in_blocks,
    stack_of,
)
