"""What one thread prints, kept from the screen; what others print still goes there."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Any

_NAMES = ("stdout", "stderr")
_WARNINGS = ("warnings", "_py_warnings")  # modules that show warnings, which are no prints

_lock = threading.Lock()
_heard: dict[int, list[str]] = {}  # by thread: what it prints, if that is to be heard


class _Stream:
    """Stands for `sys.stdout` or `sys.stderr` while some thread is heard."""

    def __init__(self, shown: Any) -> None:
        self.shown = shown

    def write(self, text: str) -> int:
        heard = _heard.get(threading.get_ident())
        if heard is None or sys._getframe(1).f_globals.get("__name__") in _WARNINGS:
            return self.shown.write(text)
        heard.append(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shown, name)


@contextlib.contextmanager
def printed() -> Iterator[list[str]]:
    """Yields a list of what this thread writes to `sys.stdout` and `sys.stderr` meanwhile."""
    text: list[str] = []
    thread = threading.get_ident()
    with _lock:
        outer = _heard.get(thread)
        _heard[thread] = text
        for name in _NAMES:
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _Stream):
                setattr(sys, name, _Stream(stream))
    try:
        yield text
    finally:
        with _lock:
            _heard.pop(thread)
            if outer is not None:
                _heard[thread] = outer
            for name in _NAMES if not _heard else ():
                stream = getattr(sys, name)
                if isinstance(stream, _Stream):  # else someone has put another in its place
                    setattr(sys, name, stream.shown)
