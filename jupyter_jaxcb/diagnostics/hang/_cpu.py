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


class CpuTimes(NamedTuple):
    """Processor times so far."""

    at: float
    process: float
    threads: dict[int, tuple[int, float]]  # clock and time of each thread of Python, by its ident
    ready: frozenset[str]  # other threads that run, or would if they had a core; empty: unknown


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


def cpu_times() -> CpuTimes:
    """Return the processor times so far."""
    threads = {
        ident: (clock, time.clock_gettime(clock))
        for ident, clock in without_collecting(_clocks)
        if _is_alive(clock)
    }
    return CpuTimes(time.monotonic(), time.process_time(), threads, _ready())


def cpu_use(since: CpuTimes | None = None) -> CpuUse:
    """Return what computed since then; without an argument, during the next 0.2 s."""
    if since is None:
        since = cpu_times()
        time.sleep(_SAMPLE_SECONDS)
    now = cpu_times()
    least = _BUSY * (now.at - since.at)
    process = now.process - since.process
    threads = {}
    for ident, (clock, used) in now.threads.items():
        before = since.threads.get(ident, (0, 0.0))
        if before[0] == clock:
            threads[ident] = used - before[1]
        elif used <= least:  # it did not run Python then, but has not computed much since it began
            threads[ident] = used
    busy = {ident: used > least for ident, used in threads.items()}
    own = {one.ident for one in threading.enumerate() if one.name.startswith("jupyter_jaxcb")}
    busiest = max(threads.keys() - own, key=lambda ident: threads[ident], default=None)
    return CpuUse(
        process=process > least or bool(since.ready & now.ready),  # others may use all cores
        others=process - sum(threads.values()) > least if threads else None,
        threads=busy,
        busiest=busiest if busiest is not None and busy[busiest] else None,
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


def _ready() -> frozenset[str]:
    """Return which other threads of the process are ready to run, as far as Linux tells."""
    found = set()
    with contextlib.suppress(OSError):
        for thread in set(os.listdir("/proc/self/task")) - {str(threading.get_native_id())}:
            with contextlib.suppress(OSError), open(f"/proc/self/task/{thread}/stat", "rb") as stat:
                if stat.read().rpartition(b") ")[2][:1] == b"R":
                    found.add(thread)
    return frozenset(found)


def _is_alive(clock: int) -> bool:
    try:
        time.clock_gettime(clock)
    except OSError:
        return False
    return True
