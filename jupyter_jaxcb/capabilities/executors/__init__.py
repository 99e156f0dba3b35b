"""Run host calls in threads, in processes or on a cluster.

`_crossing` replaces the crossing of `dispatch`, `_run` submits chunks and retries them, and
`_engine` wraps each kind of executor.
"""

from . import _crossing, _options, _running
from ._engine import ExecutorError, WorkerLostError
from ._engines import engine_of
from ._options import leaves_process
