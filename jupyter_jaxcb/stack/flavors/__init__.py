"""The primitives of the pure, io and debug flavors: one module each.

Each module lists its rules in JAX's order. All share `_bind` (turns a user's call into one flat
bind), `_eager` (the impl rule), `_vmap` (the batching rule and the table of vmap methods) and
`_derivatives` (the jvp and transpose rules, which ask the capabilities).
`buffer` holds the buffer flavor, `taps` the primitives of `host_callback`.
"""

from ._bind import anew, bind_again, bind_host_call, bind_passing_call
from ._debug import bind_debug, debug_callback
from ._debug_print import debug_print
from ._derivatives import Differentiation, derivative_rules, differentiates
from ._eager import eager, raise_itself, raise_runtime_error, without_call
from ._io import bind_io, io_callback
from ._pure import bind_pure, pure_callback
from ._vmap import batch_host_call, with_axes_in_front
