"""The mutable side: collects host calls while they happen.

`_recorder` is called on every host call; `_active` is the one slot that says who records.
`_window` reads a log that still grows, `_yielding` lets another thread do so.
"""

from ._active import activate as activate
from ._active import active as active
from ._recorder import DEFAULT_CAPACITY as DEFAULT_CAPACITY
from ._recorder import Recorder as Recorder
from ._window import Mark as Mark
from ._window import Snapshot as Snapshot
from ._workers import WorkerRows as WorkerRows
from ._yielding import YieldPoints as YieldPoints
