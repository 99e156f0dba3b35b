"""Collect host calls while they happen.

`_recorder` gets rows of host calls from those who make them, and `_rows` fills rows for calls of
the current thread. `_active` holds the recorder that listens. `_window` selects a part of a log
that still grows, and `_yielding` gives another thread time to read it.
"""

from ._active import activate as activate
from ._active import active as active
from ._active import add_backlog as add_backlog
from ._active import add_native_log as add_native_log
from ._plain import NOT_PLAIN as NOT_PLAIN
from ._plain import PlainTimes as PlainTimes
from ._recorder import COMPILED_THREAD as COMPILED_THREAD
from ._recorder import DEFAULT_CAPACITY as DEFAULT_CAPACITY
from ._recorder import Recorder as Recorder
from ._rows import record_call as record_call
from ._rows import record_elements as record_elements
from ._site_counts import QUEUE_THREAD as QUEUE_THREAD
from ._window import Mark as Mark
from ._window import Snapshot as Snapshot
from ._workers import WorkerRows as WorkerRows
from ._yielding import YieldPoints as YieldPoints
