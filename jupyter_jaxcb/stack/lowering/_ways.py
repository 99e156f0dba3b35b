"""Other ways to lower the binds of some callbacks, which capabilities register."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from ... import jax_compat
from ...recording import VmapLevel
from ..call import HostCallback


class Lower(Protocol):
    """Emits the operations through which XLA calls the host function; returns their IR values.

    Its arguments are those of `lower_host_call`; `writes` is true if the host function writes its
    results into buffers.
    """

    def __call__(
        self,
        ctx: Any,
        *operands: Any,
        callback: HostCallback,
        levels: tuple[VmapLevel, ...],
        has_side_effect: bool,
        ordered: jax_compat.Effect | None = None,
        writes: bool = False,
    ) -> Sequence[Any]: ...


_Applies = Callable[[HostCallback, Sequence[VmapLevel]], bool]
_Lowering = TypeVar("_Lowering", bound=Lower)
_ways: list[tuple[_Applies, Lower]] = []


def lowers(applies: _Applies) -> Callable[[_Lowering], _Lowering]:
    """Register what lowers the binds that `applies` is true for, as a decorator."""

    def register(lower: _Lowering) -> _Lowering:
        _ways.append((applies, lower))
        return lower

    return register


def other_way(callback: HostCallback, levels: Sequence[VmapLevel]) -> Lower | None:
    """Return what lowers a bind in another way; None if XLA calls Python."""
    return next((lower for applies, lower in _ways if applies(callback, levels)), None)
