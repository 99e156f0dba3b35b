"""Gather the batch elements for which a mask is true, for host functions that get them together."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...recording import LoweredSite


class Gathering:
    """Gathers the needed elements of operands, and puts their results where they belong.

    They are on one batch axis, also under nested vmaps, as if a single vmap had mapped over them.
    An operand that no vmap maps over stays as its vmap method passes it.

    Attributes:
        size: the number of batch elements; 1 without vmap.
    """

    def __init__(self, lowered: LoweredSite) -> None:
        levels = lowered.levels[::-1]  # outermost first
        sizes = [level.size for level in levels]
        self.size = math.prod(sizes)
        self._outer = [aval.shape for aval in lowered.results]
        is_legacy = any(level.method == "legacy_vectorized" for level in levels)
        # Per operand: its batch axes, and its row for each element (None: the same for all).
        self._plan: list[tuple[int, np.ndarray | None]] = []
        for operand in range(len(lowered.operands)):
            maps = [v.batched[operand] or v.method == "broadcast_all" for v in levels]
            own = [level.size if on else 1 for level, on in zip(levels, maps, strict=True)]
            rows = np.broadcast_to(np.arange(math.prod(own)).reshape(own), sizes).reshape(-1)
            axes = sum(maps) if is_legacy else len(levels)
            self._plan.append((axes, rows if any(maps) else None))
        # Then all elements have the same arguments, and one call serves those that need it.
        self._shared = bool(levels) and all(rows is None for _, rows in self._plan[:-1])
        self._has_axis = bool(levels) and not (self._shared and is_legacy)

    def needed(self, mask: np.ndarray) -> np.ndarray:
        """Return the row-major numbers of the batch elements for which `mask` is true."""
        flat, (_, rows) = mask.reshape(-1), self._plan[-1]
        return np.flatnonzero(np.broadcast_to(flat, self.size) if rows is None else flat[rows])

    def count(self, needed: np.ndarray) -> int | None:
        """Return the size of the batch axis of the call; None if it has no such axis."""
        if not self._has_axis:
            return None
        return 1 if self._shared else needed.size

    def gather(self, operands: Sequence[np.ndarray], needed: np.ndarray) -> list[np.ndarray]:
        """Return the operands of the needed elements; if all are needed, without copying."""
        found = []
        for operand, (axes, rows) in zip(operands, self._plan[:-1], strict=True):
            flat = operand
            if axes:
                flat = operand.reshape((math.prod(operand.shape[:axes]), *operand.shape[axes:]))
            if rows is not None and not (needed.size == self.size == len(flat)):
                flat = flat[rows[needed]]
                flat.flags.writeable = False
            found.append(flat)
        return found

    def scatter(self, results: Sequence[np.ndarray], needed: np.ndarray) -> tuple[np.ndarray, ...]:
        """Put the results of the needed elements where they belong; the others are zero."""
        found = []
        for result, shape in zip(results, self._outer, strict=True):
            placed = result
            if needed.size < self.size or self._shared:
                placed = np.zeros((self.size, *result.shape[self._has_axis :]), result.dtype)
                placed[needed] = result
            found.append(placed.reshape(shape))
        return tuple(found)
