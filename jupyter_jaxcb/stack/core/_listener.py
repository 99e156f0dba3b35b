"""Who hears of what is traced, lowered and compiled; whether any host call can come at all."""

from __future__ import annotations

import threading

from ...recording import Recorder, active
from ._block import Block


class _Asking(threading.local):
    recorder: Recorder | None = None  # hears of this thread's programs instead of the active one


_asking = _Asking()
_any_lowered = False


def listener() -> Recorder | None:
    """Who hears of what this thread traces, lowers and compiles, if anyone."""
    return _asking.recorder or active()


class Asking(Block):
    """A block of which `recorder` alone hears what this thread traces, lowers and compiles."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._before = _asking.recorder

    def begin(self) -> None:
        _asking.recorder = self._recorder

    def end(self) -> None:
        _asking.recorder = self._before


def is_asking() -> bool:
    """Whether this thread is in a block of `Asking`: what it compiles does not run."""
    return _asking.recorder is not None


def any_lowered() -> bool:
    """Whether there is, or was, any program with a callback that is recorded."""
    return _any_lowered


def calls_may_come() -> None:
    """Notes that host calls may come from now on."""
    global _any_lowered
    _any_lowered = True
