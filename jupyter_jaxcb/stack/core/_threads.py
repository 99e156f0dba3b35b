"""Which frame every thread is at."""

from __future__ import annotations

import contextlib
import gc
import sys
import threading
from collections.abc import Iterator
from types import FrameType

# A signal handler may come here again; two threads might leave the collector off for good.
_lock = threading.RLock()


@contextlib.contextmanager
def without_collecting() -> Iterator[None]:
    """No garbage is collected meanwhile, which might run anything."""
    with _lock:
        collects = gc.isenabled()
        try:
            gc.disable()
            yield
        finally:
            if collects:
                gc.enable()


def frames_of_threads() -> dict[int, FrameType]:
    """As `sys._current_frames`, which in Python 3.11 may wait for ever.

    It makes objects while it holds a lock of the interpreter's. Where that collects garbage,
    another thread may run, and need the lock (python/cpython#106883).
    """
    with without_collecting():
        return sys._current_frames()
