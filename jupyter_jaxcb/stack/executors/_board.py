"""Where workers of this machine write which element they are at: a small file that all of them map.

It says what a worker did that is not there any more, or does not answer.
"""

from __future__ import annotations

import contextlib
import functools
import mmap
import os
import tempfile
import threading
import weakref
from typing import NamedTuple

from jupyter_jaxcb_worker import SLOT, remove_own

_PLACES = 4_096


class ElementMark(NamedTuple):
    """What a worker wrote."""

    chunk: int  # by its number
    pid: int
    element: int  # of the chunk
    since_ns: int  # of the worker's clock; since the chunk began, where no batch element is timed


class Board:
    """The file, as long as this lives."""

    def __init__(self) -> None:
        number, self.path = tempfile.mkstemp(prefix="jaxcb-", suffix=".board")
        with open(number, "r+b") as file:
            file.truncate(_PLACES * SLOT.size)
            self._map = mmap.mmap(file.fileno(), 0)
        self._free = list(range(_PLACES))
        self._lock = threading.Lock()
        weakref.finalize(self, remove_own, self.path, os.getpid())

    def take(self) -> tuple[str, int] | None:
        """A place to write to; None: all are taken."""
        with self._lock:
            return (self.path, self._free.pop()) if self._free else None

    def give_back(self, place: tuple[str, int]) -> None:
        """Nobody reads it any more; a late worker's mark is known by its chunk's number."""
        with self._lock:
            self._free.append(place[1])

    def read(self, place: tuple[str, int]) -> ElementMark:
        return ElementMark(*SLOT.unpack_from(self._map, place[1] * SLOT.size))


@functools.cache
def board() -> Board | None:
    """That of this process; None where no file can be made."""
    try:
        return Board()
    except OSError:
        return None


def has_ended(pid: int) -> bool:
    """Whether no process of this number runs any more; one that nobody waited for has ended."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):  # somebody has waited, or it is not ours
            options = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return os.waitid(os.P_PID, pid, options) is not None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=board.cache_clear)
