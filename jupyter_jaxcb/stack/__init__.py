"""What JAX sees: our own primitives, rules, lowering and host dispatch."""

from ._arrays import ARRAYS as ARRAYS
from ._batching import VMAP_METHODS as VMAP_METHODS
from ._contract import ResultError as ResultError
from ._debug import debug_callback as debug_callback
from ._disabled import disabled as disabled
from ._errors import HostCallError as HostCallError
from ._errors import host_error as host_error
from ._explain import explain as explain
from ._infer import INFER as INFER
from ._io import io_callback as io_callback
from ._matrix import explain_matrix as explain_matrix
from ._print import debug_print as debug_print
from ._pure import pure_callback as pure_callback
from ._record import Record as Record
from ._record import drain as drain
from ._record import environment as environment
from ._record import record as record
from ._record import start as start
from ._record import stop as stop
from ._reentry import JaxInHostFunctionWarning as JaxInHostFunctionWarning
from ._register import debug as debug
from ._register import io as io
from ._register import pure as pure
from ._registered import Callback as Callback
from ._site import is_user_code as is_user_code
