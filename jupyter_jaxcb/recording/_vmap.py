"""Vmap methods, and what each vmap did to the arguments of a host call.

A new method is one entry of `VMAP_METHODS`. Batching rules, reports and files read it there.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import NamedTuple


class AxisKind(enum.StrEnum):
    """What becomes of the batch elements of one vmap in one array of a host call."""

    BATCHED = "batched"  # an axis with one entry for each element
    TILED = "tiled"  # an axis with the same values, repeated for each element
    SIZE1 = "size1"  # an axis of size 1, with the values for all elements
    LOOPED = "looped"  # no axis: the host loops over it, one call for each element
    UNBATCHED = "unbatched"  # no axis: the same values for all elements
    IN_PLACE = "in_place"  # an axis where the program has it, which need not be in front

    __repr__ = str.__repr__

    @property
    def is_of_host(self) -> bool:
        """Whether the host function gets an axis, in front of the axes of inner vmaps."""
        return self in (AxisKind.BATCHED, AxisKind.TILED, AxisKind.SIZE1)


class VmapMethod(NamedTuple):
    """How vmap passes a batch to a host function; results are as batched arguments."""

    name: str  # as the user types it
    batched: AxisKind  # of arguments that the vmap maps over
    unbatched: AxisKind  # of other arguments
    unrolled: bool = False  # JAX's own callbacks: the program has a call for each element

    def __repr__(self) -> str:  # printed in every jaxpr
        return repr(self.name)

    @property
    def looped(self) -> bool:
        """Whether the host loops over the batch elements."""
        return self.batched is AxisKind.LOOPED

    @property
    def hides_axes(self) -> bool:
        """Whether the host function cannot see from the shapes which arguments are batched."""
        return not self.looped and self.unbatched is AxisKind.UNBATCHED

    def axis(self, batched: bool) -> AxisKind:
        """Return what becomes of an argument."""
        return self.batched if batched else self.unbatched


VMAP_METHODS = {
    method.name: method
    for method in (
        VmapMethod("sequential", AxisKind.LOOPED, AxisKind.UNBATCHED),
        VmapMethod("sequential_unrolled", AxisKind.LOOPED, AxisKind.UNBATCHED, unrolled=True),
        VmapMethod("expand_dims", AxisKind.BATCHED, AxisKind.SIZE1),
        VmapMethod("broadcast_all", AxisKind.BATCHED, AxisKind.TILED),
        VmapMethod("legacy_vectorized", AxisKind.BATCHED, AxisKind.UNBATCHED),
    )
}
WHOLE_BATCH = VmapMethod("whole batch", AxisKind.IN_PLACE, AxisKind.UNBATCHED)  # of taps


def method_named(name: str) -> VmapMethod:
    """Return the method of JAX's own callbacks, or of an exported program, by its name."""
    known = {**VMAP_METHODS, WHOLE_BATCH.name: WHOLE_BATCH}
    return known.get(name) or VmapMethod(name, AxisKind.IN_PLACE, AxisKind.UNBATCHED)


class VmapLevel(NamedTuple):
    """What one ``vmap`` did to a callback: the innermost ``vmap`` is the first level."""

    size: int  # batch elements
    vmap_method: VmapMethod  # how the host function gets them
    batched: tuple[bool, ...]  # per flat operand: did this vmap map over it?
    axis_name: str = ""  # `axis_name` or `spmd_axis_name` of the vmap; empty without one

    @property
    def method(self) -> str:
        """The name of the method: ``"sequential"``, ``"expand_dims"``, ..."""
        return self.vmap_method.name

    @property
    def looped(self) -> bool:
        """Whether the host loops over the batch elements."""
        return self.vmap_method.batched is AxisKind.LOOPED

    @property
    def axes(self) -> tuple[AxisKind, ...]:
        """What became of each flat operand."""
        return tuple(map(self.vmap_method.axis, self.batched))

    def with_operand(self, batched: bool) -> VmapLevel:
        """Return the level of a callback with one more operand."""
        return self._replace(batched=(*self.batched, batched))

    @property
    def is_empty(self) -> bool:
        """Whether there is no host call, for lack of batch elements; a tap is called even so."""
        return self.size == 0 and self.vmap_method != WHOLE_BATCH


def calls_each_time(levels: Iterable[VmapLevel]) -> int:
    """Count the host calls of a complete crossing under some vmaps."""
    return math.prod(0 if v.is_empty else v.size if v.looped else 1 for v in levels)
