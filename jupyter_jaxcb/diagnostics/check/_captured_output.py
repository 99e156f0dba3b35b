"""Capture what one thread prints, without affecting other threads."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

_NAMES = ("stdout", "stderr")
_WARNINGS = ("warnings", "_py_warnings")  # modules that show warnings, which are not captured

_lock = threading.Lock()
_captured: dict[int, list[str]] = {}  # by captured thread: what it has printed


class _Stream:
    """Replaces `sys.stdout` or `sys.stderr` while some thread is captured."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown

    def write(self, text: str) -> int:
        captured = _captured.get(threading.get_ident())
        if captured is None or sys._getframe(1).f_globals.get("__name__") in _WARNINGS:
            return self.shown.write(text)
        captured.append(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shown, name)


@contextlib.contextmanager
def printed() -> Iterator[list[str]]:
    """Capture what this thread writes to `sys.stdout` and `sys.stderr`.

    Yields:
        A list that receives the written strings.
    """
    text: list[str] = []
    thread = threading.get_ident()
    with _lock:
        outer = _captured.get(thread)
        _captured[thread] = text
        for name in _NAMES:
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _Stream):
                setattr(sys, name, _Stream(stream))
    try:
        yield text
    finally:
        with _lock:
            _captured.pop(thread)
            if outer is not None:
                _captured[thread] = outer
            for name in _NAMES if not _captured else ():
                stream = getattr(sys, name)
                if isinstance(stream, _Stream):  # else other code has replaced it
                    setattr(sys, name, stream.shown)
