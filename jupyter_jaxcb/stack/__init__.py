"""The callback stack: primitives, rules, lowering and host dispatch.

Its packages, from the bottom up: `options`, `trace`; `call`; `errors`, `results`, `elision`;
`interrupt`; `dispatch`; `lowering`; `flavors`. While JAX traces and lowers, a call passes through
`flavors` and `lowering`; while the program runs, through `dispatch`. What registers itself in
their tables is in `capabilities`.
"""

from ..jax_compat import leave_loops_to_jax as leave_loops_to_jax
from .call import HostFunction as HostFunction
from .call import Run as Run
from .call import as_magic_options as as_magic_options
from .call import cell_begins as cell_begins
from .call import cell_ends as cell_ends
from .call import cell_known_as as cell_known_as
from .call import check_leaves as check_leaves
from .call import did_you_mean as did_you_mean
from .elision import all_counted as all_counted
from .errors import HostCallError as HostCallError
from .errors import add_note as add_note
from .errors import attribute_of as attribute_of
from .errors import error_for_user as error_for_user
from .errors import failed_while as failed_while
from .errors import host_error as host_error
from .errors import is_a as is_a
from .errors import raise_interrupt as raise_interrupt
from .errors import refused_frames as refused_frames
from .errors import set_cell_namer as set_cell_namer
from .errors import set_running_reporter as set_running_reporter
from .errors import stop_attaching_causes as stop_attaching_causes
from .errors import strict_errors as strict_errors
from .flavors import debug_callback as debug_callback
from .flavors import debug_print as debug_print
from .flavors import io_callback as io_callback
from .flavors import pure_callback as pure_callback
from .flavors.buffer import RetainedBufferWarning as RetainedBufferWarning
from .flavors.buffer import buffer_callback as buffer_callback
from .flavors.taps import CallbackException as CallbackException
from .flavors.taps import barrier as barrier
from .flavors.taps import barrier_at_exit as barrier_at_exit
from .flavors.taps import bind_tap as bind_tap
from .flavors.taps import bind_tap_call as bind_tap_call
from .flavors.taps import flags as flags
from .interrupt import InFlight as InFlight
from .interrupt import interrupt as interrupt
from .interrupt import interrupt_main as interrupt_main
from .interrupt import on_thread_of_xla as on_thread_of_xla
from .interrupt import release as release
from .options import FLAVORS as FLAVORS
from .options import Options as Options
from .options import choices_of as choices_of
from .options import rows as rows
from .results import INFER as INFER
from .results import ResultError as ResultError
from .results import ResultStructureWarning as ResultStructureWarning
from .results import exact_avals as exact_avals
from .results import nothing_in as nothing_in
from .results import scalar_of as scalar_of
from .trace import disabled as disabled
from .trace import is_cell as is_cell
