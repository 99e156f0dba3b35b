"""The decorators ``pure``, ``io``, ``debug``, ``buffer`` and ``tap``, and the `Callback` class.

`_decorators` has the first three. Each decorator validates its options, declares the result and
returns a `Callback` (`_callback`). `_two_forms` lets decorators work with and without arguments.
"""

from ._buffer import BufferCallback as BufferCallback
from ._buffer import buffer as buffer
from ._callback import Callback as Callback
from ._callback import PureCallback as PureCallback
from ._decorators import debug as debug
from ._decorators import io as io
from ._decorators import pure as pure
from ._tap import tap as tap
from ._watched import watching_calls as watching_calls
