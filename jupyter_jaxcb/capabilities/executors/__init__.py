"""Run host calls in threads, in processes or on a cluster.

`_crossing` replaces the crossing of `dispatch`, `_run` submits chunks and retries them, and
`_engine` wraps each kind of executor.
"""

from . import _crossing as _crossing
from . import _options as _options
from . import _running as _running
from ._engine import ExecutorError as ExecutorError
from ._engine import WorkerLostError as WorkerLostError
