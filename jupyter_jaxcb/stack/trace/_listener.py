"""Which recorder records what this thread traces, and whether any host call is possible."""

from __future__ import annotations

import threading

from ...recording import Recorder, active
from ._block import Block


class _ThreadState(threading.local):
    recorder: Recorder | None = None  # records this thread's programs instead of the active one


_thread = _ThreadState()
_any_lowered = False


def listener() -> Recorder | None:
    """Return the recorder for what this thread traces, lowers and compiles, if any."""
    return _thread.recorder or active()


class ThreadRecorder(Block):
    """A block in which only `recorder` records what this thread traces, lowers and compiles."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before = _thread.recorder

    def begin(self) -> None:
        _thread.recorder = self._recorder

    def end(self) -> None:
        _thread.recorder = self._before


def has_thread_recorder() -> bool:
    """Return whether this thread is in a `ThreadRecorder` block, whose programs never run."""
    return _thread.recorder is not None


def any_lowered() -> bool:
    """Return whether any program with a recordable callback has been lowered."""
    return _any_lowered


def expect_host_calls() -> None:
    """Note that host calls are possible from now on."""
    global _any_lowered
    _any_lowered = True
