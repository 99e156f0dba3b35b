"""Run host calls in threads, in processes or on a cluster.

`_crossing` replaces the crossing of `dispatch`, `_run` submits chunks and retries them, and
`_engine` wraps each kind of executor.
"""

from ._crossing import CROSS as CROSS
from ._crossing import build_crossing as build_crossing
from ._engine import ExecutorError as ExecutorError
from ._engine import WorkerLostError as WorkerLostError
from ._flight import SubmittedChunk as SubmittedChunk
from ._options import EXECUTORS as EXECUTORS
from ._options import check_spread as check_spread
from ._options import spread_of as spread_of
