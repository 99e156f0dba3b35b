"""Samples of the block's thread, and what they tell of the time in which nothing of JAX runs."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from types import FrameType
from typing import NamedTuple

import numpy as np

from ...recording import BACKGROUND, Frame, PartKind
from ...stack.trace import JAX_FOLDER, is_cell, is_user_code, stack_of
from ._spans import NONE, Division

_JAX, _USER, _LIBRARY, _ANY = "jax", "user", "library", ""
_INSTALLED = ("site-packages", "dist-packages")
# JAX's other packages, and those that work for their caller, as Python's own modules do.
_OWNERS = {"jaxlib": _JAX, "numpy": _ANY, "ml_dtypes": _ANY, "opt_einsum": _ANY}
_COVERED = 0.95  # of the time between samples, to count as covered
Where = tuple[Frame | None, bool]  # a line of user code, and whether JAX's own Python runs for it
NewPart = Callable[[PartKind, Where], int]


def place_of(frame: FrameType | None) -> Where:
    """Return the innermost line of user code, and whether JAX's own Python runs for that line.

    Args:
        frame: the innermost frame of a thread.
    """
    runs = _ANY
    for caller in stack_of(frame):
        code = caller.f_code
        owner = _owner(code.co_filename)
        runs = runs or owner
        if owner == _USER:
            return _frame(code.co_name, code.co_filename, caller.f_lineno), runs == _JAX
    return None, runs == _JAX


@functools.lru_cache(maxsize=4096)
def _owner(file: str) -> str:
    """Return whose work the code in `file` does; `_ANY`: that of its caller."""
    if is_user_code(file):
        return _USER
    path = os.path.normpath(file)
    if path.startswith(JAX_FOLDER):
        return _JAX
    folders = path.split(os.sep)
    for name in _INSTALLED:
        if name in folders[:-1]:
            return _OWNERS.get(folders[folders.index(name) + 1], _LIBRARY)
    return _ANY


@functools.lru_cache(maxsize=4096)
def _frame(function: str, file: str, line: int) -> Frame:
    return Frame(function, file, line, cell=is_cell(file))


class Samples(NamedTuple):
    """Samples of the block's thread; the first and the last are the edges of the block."""

    times: np.ndarray  # on the recorder's clock
    cpu: np.ndarray  # the CPU time of the thread until then, in nanoseconds
    places: Sequence[Where]


def fill(
    block: Division, own: Division, samples: Samples, kinds: Sequence[PartKind], part: NewPart
) -> Division:
    """Return `block` with an owner for each instant: what is free belongs to Python or is idle.

    Between two samples, Python has as much free time as its thread has CPU time: first what nobody
    has, then that of calls in the background. The thread's CPU time also pays for what JAX does in
    it. If some intervals are all JAX, their CPU time tells how much that is; otherwise JAX is taken
    to compute all the time.

    Args:
        block: who has each instant of the block.
        own: what the block's own thread does for JAX.
        samples: the samples; `block` and `own` have edges at their times.
        kinds: the kind of each part.
        part: returns the number of a part.
    """
    edges, owners = block
    lengths, last = np.diff(edges), len(samples.times) - 2
    nobody, behind = (
        owners == NONE,
        np.array([kind == BACKGROUND for kind in kinds] + [False])[owners],
    )
    free = np.flatnonzero(nobody | behind)

    def interval_of(times: np.ndarray) -> np.ndarray:
        return np.clip(np.searchsorted(samples.times, times, side="right") - 1, 0, last)

    def totals(division: Division, which: np.ndarray) -> np.ndarray:
        at = interval_of(division[0][:-1])[which]
        return np.bincount(at, np.diff(division[0])[which], last + 1)

    interval, cpu = interval_of(edges[:-1]), np.diff(samples.cpu)
    jax = totals(own, own[1] != NONE)
    covered = jax >= _COVERED * np.diff(samples.times)
    load = cpu[covered].sum() / max(jax[covered].sum(), 1) if covered.any() else 1.0
    python = np.clip(cpu - min(load, 1.0) * jax, 0, totals(block, free)).astype(np.int64)
    # Python runs at the beginning of each free segment, until its time is spent.
    order = free[np.lexsort((behind[free], interval[free]))]
    before = np.cumsum(lengths[order]) - lengths[order]
    before -= before[np.searchsorted(interval[order], interval[order])]
    runs = np.zeros_like(lengths)
    runs[order] = np.clip(python[interval[order]] - before, 0, lengths[order])
    idle = np.bincount(interval[nobody], (lengths - runs)[nobody], last + 1)
    # The line of an interval is that of the next sample of its kind in free time: in other time,
    # the events of the profiler show what runs.
    at = np.clip(np.searchsorted(edges, samples.times[1:], side="right") - 1, 0, len(owners) - 1)
    is_known = np.array([any(where) for where in samples.places[1:]]) & np.isin(at, free)
    of_python, of_idle = (
        np.array([part(kind, where) for where in _next(samples.places[1:], which & is_known)])
        for kind, which in ((PartKind.PYTHON, python > idle), (PartKind.IDLE, python <= idle))
    )
    cuts = np.column_stack([edges[:-1], edges[:-1] + runs]).ravel()
    rest = np.where(nobody, of_idle[interval], owners)
    owners = np.column_stack([of_python[interval], rest]).ravel()
    is_long = np.diff(cuts, append=edges[-1]) > 0
    return np.append(cuts[is_long], edges[-1]), owners[is_long]


def _next(places: Sequence[Where], which: np.ndarray) -> list[Where]:
    """Return for each sample the place of the next one that counts, else that of the last one."""
    counts = np.flatnonzero(which)
    if not len(counts):
        return [(None, False)] * len(places)
    nearest = np.minimum(np.searchsorted(counts, np.arange(len(places))), len(counts) - 1)
    return [places[number] for number in counts[nearest].tolist()]
