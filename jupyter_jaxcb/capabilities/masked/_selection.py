"""Which batch elements of a crossing have a mask that is true.

Under looped vmaps they are a part of the schedule. Host functions that get them together get them
gathered.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence

import numpy as np

from ...recording import Aval, AxisKind, LoweredSite
from ...stack.call import empty_aligned
from ...stack.dispatch import Elements, ElementSchedule, Selection

_SITES = 64  # kept for each call site: one for each number of gathered elements


class Gathering:
    """Gathers the needed elements of operands, and puts their results where they belong.

    They are on one batch axis, also under nested vmaps, as if a single vmap had mapped over them.
    An operand that no vmap maps over stays as its vmap method passes it.

    Attributes:
        size: the number of batch elements; 1 without vmap.
        outer: the shapes of all results.
        inner: the shapes of the results of one batch element.
        plan: for each operand its batch axes, and its row for each element; None: the same for all.
        shared: whether all elements have the same arguments, and one call serves those in need.
        has_axis: whether the arrays of the call have a batch axis.
    """

    def __init__(self, lowered: LoweredSite) -> None:
        levels = lowered.levels[::-1]  # outermost first
        sizes = [level.size for level in levels]
        self.size = math.prod(sizes)
        self.outer = [aval.shape for aval in lowered.results]
        self.inner = [shape[len(levels) :] for shape in self.outer]
        self.plan: list[tuple[int, np.ndarray | None]] = []
        for operand in range(len(lowered.operands)):
            kinds = [level.axes[operand] for level in levels]
            maps = [kind in (AxisKind.BATCHED, AxisKind.TILED) for kind in kinds]
            own = [level.size if on else 1 for level, on in zip(levels, maps, strict=True)]
            rows = np.broadcast_to(np.arange(math.prod(own)).reshape(own), sizes).reshape(-1)
            axes = sum(kind.is_of_host for kind in kinds)
            self.plan.append((axes, rows if any(maps) else None))
        self.shared = bool(levels) and all(rows is None for _, rows in self.plan[:-1])
        hides_axes = any(level.vmap_method.hides_axes for level in levels)
        self.has_axis = bool(levels) and not (self.shared and hides_axes)
        self.site = functools.lru_cache(_SITES)(functools.partial(_site, lowered, self))

    def select(self, mask: np.ndarray) -> Gathered:
        """Return the batch elements for which `mask` is true."""
        flat, (_, rows) = mask.reshape(-1), self.plan[-1]
        needed = np.broadcast_to(flat, self.size) if rows is None else flat[rows]
        return Gathered(self, needed.nonzero()[0])


def _site(lowered: LoweredSite, gathering: Gathering, count: int) -> LoweredSite:
    """Return the site of a call for `count` gathered elements, without the mask."""
    operands = []
    for aval, (axes, rows) in zip(lowered.operands, gathering.plan[:-1], strict=False):
        batch = ((1 if rows is None else count),) * bool(axes)
        operands.append(Aval((*batch, *aval.shape[axes:]), aval.dtype))
    axis = (1 if gathering.shared else count,) * gathering.has_axis
    results = (Aval((*axis, *x.shape[len(lowered.levels) :]), x.dtype) for x in lowered.results)
    batched = (True,) * len(operands)
    level = lowered.levels[0]._replace(size=axis[0], batched=batched) if axis else None
    return dataclasses.replace(
        lowered, operands=tuple(operands), results=tuple(results), masked=False,
        levels=() if level is None else (level,),
    )  # fmt: skip


class Gathered(Selection):
    """Gathered batch elements, for which there is one call.

    Args:
        gathering: gathers those of this site.
        needed: their row-major numbers.
    """

    def __init__(self, gathering: Gathering, needed: np.ndarray) -> None:
        self._gathering, self.numbers = gathering, needed
        self.size = needed.size

    @property
    def site(self) -> LoweredSite:  # type: ignore[override]
        """The site of a call with these many elements."""
        return self._gathering.site(self.size)

    def gather(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the operands of the needed elements; if all are needed, without copying."""
        found, whole = [], self._gathering.size
        for operand, (axes, rows) in zip(operands, self._gathering.plan[:-1], strict=True):
            flat = operand
            if axes > 1:
                flat = operand.reshape((math.prod(operand.shape[:axes]), *operand.shape[axes:]))
            if rows is not None and not (self.size == whole == len(flat)):
                flat = flat[rows[self.numbers]]
                flat.flags.writeable = False
            found.append(flat)
        return found

    def scatter(self, results: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """Put the results of the needed elements where they belong; the others are zero."""
        if self._is_whole:
            outer = self._gathering.outer
            return tuple(y.reshape(shape) for y, shape in zip(results, outer, strict=True))
        outs = [
            np.zeros(shape, result.dtype)
            for result, shape in zip(results, self._gathering.outer, strict=True)
        ]
        self.keep(results, outs)
        return tuple(outs)

    def outputs(self, outs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the memory that the call writes to; if all elements are needed, that of `outs`."""
        if self._is_whole:
            axis = (self.size,) * self._gathering.has_axis
            shapes = [(*axis, *shape) for shape in self._gathering.inner]
            return [out.reshape(shape) for out, shape in zip(outs, shapes, strict=True)]
        _, avals = self.site.host_avals()
        return [empty_aligned(aval.shape, out.dtype) for aval, out in zip(avals, outs, strict=True)]

    def keep(self, written: Sequence[np.ndarray], outs: Sequence[np.ndarray]) -> None:
        """Put what the call wrote where it belongs, unless it wrote there."""
        if not self._is_whole:
            for result, out, inner in zip(written, outs, self._gathering.inner, strict=True):
                placed = out.reshape((self._gathering.size, *inner))
                placed[self.numbers] = result

    @property
    def _is_whole(self) -> bool:
        """Whether the arrays of the call are those of all elements."""
        return self.size == self._gathering.size and not self._gathering.shared


def looped_elements(lowered: LoweredSite) -> Callable[[np.ndarray], Elements]:
    """Return what selects elements of looped vmaps by a mask, their last operand."""
    every = ElementSchedule(lowered)
    *every.plan, (_, rows) = every.plan
    count = every.size

    def select(mask: np.ndarray) -> Elements:
        flat = mask.reshape(-1)
        needed = np.broadcast_to(flat, count) if rows is None else flat[rows]
        calls = needed.nonzero()[0]
        return every if calls.size == count else _LoopedElements(every, calls)

    return select


class _LoopedElements(Elements):
    """Some of the elements of a schedule.

    Args:
        every: the schedule.
        calls: their places in its order.
    """

    def __init__(self, every: ElementSchedule, calls: np.ndarray) -> None:
        self.site, self._count = every.site, every.size
        self.order, self.size = every.order[calls], calls.size
        self.plan = [(axes, None if rows is None else rows[calls]) for axes, rows in every.plan]

    def by_element(self, called: np.ndarray) -> np.ndarray:
        """Put each row where its batch element is; the rows of the others are zero."""
        placed = np.zeros((self._count, *called.shape[1:]), called.dtype)
        placed[self.order] = called
        return placed
