"""The mutable side: what hears of host calls while they happen."""

from ._active import activate as activate
from ._active import active as active
from ._recorder import DEFAULT_CAPACITY as DEFAULT_CAPACITY
from ._recorder import Recorder as Recorder
from ._window import Mark as Mark
from ._window import Snapshot as Snapshot
from ._workers import WorkerRows as WorkerRows
from ._yielding import YieldPoints as YieldPoints
