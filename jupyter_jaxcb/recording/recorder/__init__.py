"""."""

from ._active import activate as activate
from ._active import active as active
from ._recorder import DEFAULT_CAPACITY as DEFAULT_CAPACITY
from ._recorder import Recorder as Recorder
from ._window import Heard as Heard
from ._window import Mark as Mark
from ._workers import WorkerRows as WorkerRows
from ._yielding import Turns as Turns
