"""Run host calls in threads, in processes or on a cluster.

`_crossing` replaces the crossing of `dispatch`, `_run` submits chunks and retries them, and
`_engine` wraps each kind of executor.
"""

from . import _options as _options
from ._crossing import CROSS as CROSS
from ._engine import ExecutorError as ExecutorError
from ._engine import WorkerLostError as WorkerLostError
from ._flight import SubmittedChunk as SubmittedChunk
