"""Queued callbacks: the program goes on, and one background thread makes the host calls.

Read `_crossing` first, then `_queue`, and `_recorder`, to which calls from the queue are reported.
`_barrier` makes JAX's barrier, the end of Python, and a cell wait for queued calls.
"""

from . import _crossing
from ._barrier import QueueFullWarning, Unfinished
from ._limit import drop_queued, set_queue_limit
from ._queue import queue
