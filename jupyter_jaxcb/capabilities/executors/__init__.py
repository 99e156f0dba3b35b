"""Run host calls in threads, in processes or on a cluster.

`_crossing` replaces the crossing of `dispatch`: it pickles the host function, sends chunks of batch
elements with `_chunks`, and stacks what comes back. `_pools` makes the executors that have a name,
and `_running` finds the calls that workers are in.
"""

from . import _crossing, _options, _running
from ._pools import ExecutorError, WorkerLostError
