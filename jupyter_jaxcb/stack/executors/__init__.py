"""."""

from ._crossing import CROSS as CROSS
from ._crossing import build_crossing as build_crossing
from ._engine import ExecutorError as ExecutorError
from ._engine import WorkerLostError as WorkerLostError
from ._flight import Flight as Flight
from ._options import EXECUTORS as EXECUTORS
from ._options import check_executor as check_executor
from ._options import settings_of as settings_of
from ._options import spread_of as spread_of
