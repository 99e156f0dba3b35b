"""Collect host calls while they happen.

`_recorder` gets rows of host calls from those who make them, and `_rows` fills rows for calls of
the current thread. `_sample_values` keeps values of the first calls, and `_array_values` summarizes
large arrays of them. `_active` holds the recorder that listens. `_window` selects a part of a log
that still grows, and `_yielding` gives another thread time to read it.
"""

from ._active import activate, active, add_backlog, add_native_log
from ._plain import HAS_GIL, NOT_PLAIN, PlainTimes
from ._recorder import COMPILED_THREAD, DEFAULT_CAPACITY, Recorder
from ._rows import record_call, record_elements
from ._sample_values import value_words
from ._site_counts import QUEUE_THREAD
from ._window import Mark, Snapshot
from ._workers import WorkerRows, names_worker
from ._yielding import YieldPoints
