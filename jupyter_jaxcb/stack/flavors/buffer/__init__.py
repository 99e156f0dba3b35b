"""The buffer flavor: the host function writes its results into memory that XLA provides.

`_buffer` has the rules in JAX's order, `_lowering` the custom call, and `_crossing` what XLA calls.
The host function borrows arrays (`_borrowed_memory`); `_canary` finds output that it did not write.
"""

from ._borrowed_memory import RetainedBufferWarning
from ._buffer import bind_buffer, buffer_callback
from ._canary import run_checked
