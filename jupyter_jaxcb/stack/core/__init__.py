"""The basic types of the stack: callbacks, binds, call sites and arrays.

Read `_callback` first (the static parameter of every bind), then `_site` (the line of user code
that made the bind) and `_late_binding` (which function a registered name calls). The other modules
support these three.
"""

from ._advice import as_magic_options as as_magic_options
from ._advice import debug_equivalent as debug_equivalent
from ._advice import did_you_mean as did_you_mean
from ._advice import how_to_differentiate as how_to_differentiate
from ._advice import how_to_transpose as how_to_transpose
from ._advice import option as option
from ._array_names import ArrayNames as ArrayNames
from ._arrays import ARRAYS as ARRAYS
from ._arrays import aligned as aligned
from ._arrays import aligning as aligning
from ._arrays import check_arrays as check_arrays
from ._arrays import check_leaves as check_leaves
from ._arrays import empty_aligned as empty_aligned
from ._arrays import is_array as is_array
from ._arrays import is_big as is_big
from ._arrays import taking_jax_arrays as taking_jax_arrays
from ._arrays import to_array as to_array
from ._arrays import to_aval as to_aval
from ._block import Block as Block
from ._callback import NO_STATIC as NO_STATIC
from ._callback import Bind as Bind
from ._callback import HostCallback as HostCallback
from ._callback import HostFunction as HostFunction
from ._callback import Static as Static
from ._callback import given_name as given_name
from ._callback import name_of as name_of
from ._code_owner import CROSSINGS as CROSSINGS
from ._code_owner import EAGER as EAGER
from ._code_owner import JAX_FOLDER as JAX_FOLDER
from ._code_owner import WAITING as WAITING
from ._code_owner import is_cell as is_cell
from ._code_owner import is_machinery as is_machinery
from ._code_owner import is_ours as is_ours
from ._code_owner import is_own_module as is_own_module
from ._code_owner import is_user_code as is_user_code
from ._disabled import disabled as disabled
from ._disabled import enabled as enabled
from ._disabled import is_disabled as is_disabled
from ._disabled import left_out as left_out
from ._error_text import add_note as add_note
from ._error_text import describe as describe
from ._error_text import message_of as message_of
from ._error_text import plain as plain
from ._late_binding import Run as Run
from ._late_binding import cell_begins as cell_begins
from ._late_binding import cell_ends as cell_ends
from ._late_binding import cell_known_as as cell_known_as
from ._late_binding import register as register
from ._listener import ThreadRecorder as ThreadRecorder
from ._listener import any_lowered as any_lowered
from ._listener import expect_host_calls as expect_host_calls
from ._listener import has_thread_recorder as has_thread_recorder
from ._listener import listener as listener
from ._observed import Observed as Observed
from ._observed import ObservedFormat as ObservedFormat
from ._observed import Proxy as Proxy
from ._observed import is_held as is_held
from ._observed import is_observing as is_observing
from ._observed import switch as switch
from ._observed import switches as switches
from ._observed import user_function_name as user_function_name
from ._options import ExecutorOptions as ExecutorOptions
from ._options import Options as Options
from ._options import executor_word as executor_word
from ._signatures import without_leading as without_leading
from ._site import Found as Found
from ._site import find_site as find_site
from ._site import site_of_frames as site_of_frames
from ._threads import frames_of_threads as frames_of_threads
from ._threads import without_collecting as without_collecting
