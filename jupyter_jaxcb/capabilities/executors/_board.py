"""A memory-mapped file where local workers write which batch element they are running.

It shows what a worker was doing when it died or stopped responding.
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
    """What a worker wrote on the board."""

    chunk: int  # the number of the chunk
    pid: int
    element: int  # counted within the chunk
    since_ns: int  # the worker's clock when the element (if untimed: the chunk) started


class Board:
    """The file; it exists as long as this object."""

    def __init__(self) -> None:
        number, self.path = tempfile.mkstemp(prefix="jaxcb-", suffix=".board")
        with open(number, "r+b") as file:
            file.truncate(_PLACES * SLOT.size)
            self._map = mmap.mmap(file.fileno(), 0)
        self._free = list(range(_PLACES))
        self._lock = threading.Lock()
        weakref.finalize(self, remove_own, self.path, os.getpid())

    def take(self) -> tuple[str, int] | None:
        """Reserve a place to write to; return None if all are taken."""
        with self._lock:
            return (self.path, self._free.pop()) if self._free else None

    def give_back(self, place: tuple[str, int]) -> None:
        """Free a place. A late mark of its last worker is harmless: it has the old chunk number."""
        with self._lock:
            self._free.append(place[1])

    def read(self, place: tuple[str, int]) -> ElementMark:
        return ElementMark(*SLOT.unpack_from(self._map, place[1] * SLOT.size))


@functools.cache
def board() -> Board | None:
    """Return the board of this process; None if the file cannot be created."""
    try:
        return Board()
    except OSError:
        return None


def has_ended(pid: int) -> bool:
    """Return whether the process `pid` has ended; a zombie has."""
    if hasattr(os, "waitid"):
        with contextlib.suppress(ChildProcessError):  # already waited for, or not our child
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
