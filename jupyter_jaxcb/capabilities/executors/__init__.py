"""Run host calls in threads, in processes or on a cluster.

`_crossing` replaces the crossing of `dispatch`: it sends chunks of batch elements to workers, and
puts what comes back into rows, results or an error. `_pools` makes the executors that have a name,
and `_running` finds the calls that workers are in.
"""

from . import _crossing, _options, _running
from ._pools import ExecutorError, WorkerLostError
