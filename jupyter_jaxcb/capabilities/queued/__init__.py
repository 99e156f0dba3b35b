"""Queued callbacks: the program goes on, and one background thread makes the host calls.

Read `_crossing` first, then `_queue`, and `_recorder`, to which calls from the queue are reported.
`_barrier` makes JAX's barrier and the end of Python wait for queued calls; `_unfinished` does that
for a cell.
"""

from . import _crossing as _crossing
from . import _options as _options
from ._barrier import QueueFullWarning as QueueFullWarning
from ._limit import drop_queued as drop_queued
from ._limit import set_queue_limit as set_queue_limit
from ._queue import queue as queue
from ._unfinished import Unfinished as Unfinished
