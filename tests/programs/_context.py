"""Where a statement of a random program may be."""

from __future__ import annotations

import dataclasses

from ._program import Function


@dataclasses.dataclass(frozen=True)
class Context:
    """What the code around a statement requires of it."""

    differentiated: bool = False
    batched: bool = False
    looped: bool = False
    pure: bool = False  # no side effects allowed
    depth: int = 3


@dataclasses.dataclass
class Helper:
    """A function of the module and the context it may be called in."""

    function: Function
    context: Context
