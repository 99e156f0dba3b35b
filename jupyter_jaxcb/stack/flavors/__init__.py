"""The primitives of the pure, io and debug flavors: one module each.

Each module lists its rules in JAX's order. All share `_bind` (turns a user's call into one flat
bind), `_eager` (the impl rule) and `_vmap` (the batching rule and the table of vmap methods).
`buffer` holds the buffer flavor, `taps` the primitives of `host_callback`.
"""

from ._bind import bind_host_call as bind_host_call
from ._bind import bind_passing_call as bind_passing_call
from ._debug import bind_debug as bind_debug
from ._debug import debug_callback as debug_callback
from ._debug_print import debug_print as debug_print
from ._eager import eager as eager
from ._eager import raise_itself as raise_itself
from ._eager import raise_runtime_error as raise_runtime_error
from ._eager import without_call as without_call
from ._io import bind_io as bind_io
from ._io import io_callback as io_callback
from ._pure import bind_pure as bind_pure
from ._pure import pure_callback as pure_callback
from ._pure import refuse_derivatives as refuse_derivatives
from ._vmap import batch_host_call as batch_host_call
from ._vmap import with_axes_in_front as with_axes_in_front
