"""Collect host calls while they happen.

`_recorder` gets rows of host calls from those who make them, and `_rows` fills rows for calls of
the current thread. `_sample_values` keeps values of the first calls. `_active` holds the recorder
that listens. `_window` selects a part of a log that still grows, and `_yielding` gives another
thread time to read it.
"""

from ._active import activate, active, add_backlog, add_native_log
from ._plain import NOT_PLAIN, PlainTimes
from ._recorder import COMPILED_THREAD, DEFAULT_CAPACITY, QUEUE_THREAD, Recorder
from ._rows import record_call, record_elements
from ._sample_values import value_words
from ._window import Mark
from ._yielding import YieldPoints
