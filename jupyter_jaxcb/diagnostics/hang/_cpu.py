"""Measure which threads compute, and whether threads without Python do."""

from __future__ import annotations

import contextlib
import itertools
import os
import sys
import threading
import time
from typing import NamedTuple

from ...stack.trace import without_collecting

_BUSY = 0.05  # of one core, which others may use too
_SAMPLE_SECONDS = 0.2


class CpuTimes:
    """Processor times so far."""

    def __init__(self) -> None:
        self.at = time.monotonic()
        self.process = time.process_time()
        self.ready = _ready()
        self.threads: dict[int, tuple[int, float]] = {}  # clock and time, by ident
        for ident, clock in without_collecting(_clocks):
            with contextlib.suppress(OSError):  # the thread has ended
                self.threads[ident] = clock, time.clock_gettime(clock)


class CpuUse(NamedTuple):
    """What computed in some time.

    Attributes:
        process: whether any thread of the process did.
        others: whether threads did that do not run Python now, such as those of XLA and BLAS;
            None if that cannot be measured.
        threads: whether each thread of Python did, by its ident; empty if that cannot be measured.
        busiest: ident of the thread of Python, none of this package, that computed most; None if
            none did.
    """

    process: bool
    others: bool | None
    threads: dict[int, bool]
    busiest: int | None


def cpu_use(since: CpuTimes | None = None) -> CpuUse:
    """Return what computed since then; without an argument, during the next 0.2 s."""
    if since is None:
        since = CpuTimes()
        time.sleep(_SAMPLE_SECONDS)
    now = CpuTimes()
    least = _BUSY * (now.at - since.at)
    process = now.process - since.process
    used = {}
    for ident, (clock, total) in now.threads.items():
        before = since.threads.get(ident, (0, 0.0))
        if before[0] == clock:
            used[ident] = total - before[1]
        elif total <= least:  # it ran no Python then, but has not computed much since it began
            used[ident] = total
    threads = threading.enumerate()
    ours = {thread.ident for thread in threads if thread.name.startswith("jupyter_jaxcb")}
    busiest = max(used.keys() - ours, key=lambda ident: used[ident], default=None)
    return CpuUse(
        process=process > least or bool(since.ready & now.ready),  # others may use all cores
        others=process - sum(used.values()) > least if used else None,
        threads={ident: seconds > least for ident, seconds in used.items()},
        busiest=busiest if busiest is not None and used[busiest] > least else None,
    )


def _clocks() -> list[tuple[int, int]]:
    """Return the ident and the clock of each thread that runs Python.

    All of it runs in C, so no thread can end between its discovery and the look at its clock, which
    may crash for a thread that has ended.
    """
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None:  # on Windows
        return []
    frames = itertools.chain.from_iterable(itertools.starmap(sys._current_frames, [()]))
    idents, same = itertools.tee(frames)
    return list(zip(idents, map(clock_of, same), strict=False))


def _ready() -> set[str]:
    """Return which other threads run, or would if they had a core; as far as Linux tells."""
    ready = set()
    with contextlib.suppress(OSError):
        for thread in set(os.listdir("/proc/self/task")) - {str(threading.get_native_id())}:
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/stat", "rb") as stat:
                if stat.read().rpartition(b") ")[2][:1] == b"R":
                    ready.add(thread)
    return ready
