"""Queued callbacks: the program goes on, and one background thread makes the host calls.

Read `_crossing` first, then `_queue`. `_barrier` makes JAX's barrier, the end of Python, and a cell
wait for queued calls.
"""

from . import _crossing
from ._barrier import QueueFullWarning, Unfinished
from ._queue import drop_queued, queue, set_queue_limit
