"""The flavors: what JAX does with the primitive of each, and how a call becomes a bind.

`_flavor` has JAX's rules, which all flavors share, in JAX's order; `_pure`, `_io` and `_debug` say
where they differ. `_bind` turns a user's call into one flat bind, and `_vmap` batches.
`_bound_call` is what the derivative rules of capabilities get.
`buffer` holds the buffer flavor, `taps` the primitives of `host_callback`.
"""

from ._bind import bind
from ._bound_call import BoundCall
from ._debug import bind_debug, debug_callback
from ._debug_print import debug_print
from ._eager import raise_itself, raise_runtime_error
from ._flavor import KEPT, Flavor
from ._io import bind_io, io_callback
from ._pure import bind_pure, pure_callback
from ._vmap import with_axes_in_front
