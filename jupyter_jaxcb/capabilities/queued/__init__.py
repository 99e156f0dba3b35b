"""Queued callbacks: the program goes on, and one background thread makes the host calls.

Read `_crossing` first, then `_queue`, and `_recorder`, to which calls from the queue are reported.
`_barrier` makes JAX's barrier, the end of Python, and a cell wait for queued calls.
"""

from . import _crossing as _crossing
from ._barrier import QueueFullWarning as QueueFullWarning
from ._barrier import Unfinished as Unfinished
from ._limit import drop_queued as drop_queued
from ._limit import set_queue_limit as set_queue_limit
from ._queue import queue as queue
