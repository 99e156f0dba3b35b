"""The decorators ``pure``, ``io``, ``debug``, ``buffer`` and ``tap``, and the `Callback` class.

`_decorators` has the first three. Each decorator validates its options, declares the result and
returns a `Callback` (`_callback`). `_two_forms` lets decorators work with and without arguments.
"""

from ._buffer import BufferCallback, buffer
from ._callback import Callback, PureCallback
from ._decorators import debug, io, pure
from ._tap import tap
from ._watched import watching_calls
