"""What capabilities do to the callbacks whose options ask for them: one row each.

A capability adds its row when its folder is imported. `Options.capabilities` looks up the rows of a
callback once; binds, lowering, crossings and reports read that tuple.
"""

from __future__ import annotations

import bisect
import enum
from collections.abc import Callable
from typing import Any, NamedTuple


class Decides(enum.IntEnum):
    """What a capability decides; rows are in this order, and the first that decides it does."""

    WHEN = 0  # the host calls are made
    WHERE = 1  # they run
    WHICH = 2  # batch elements they are made for
    HOW = 3  # the host function is entered
    INSIDE = 4  # nothing: it looks at what the host function does


class Capability(NamedTuple):
    """A capability; what it leaves to others is None.

    Attributes:
        decides: its place among the others.
        applies: whether it is for callbacks with certain `Options`.
        crossing: builds a crossing, given its `dispatch.CallPlan`; what is left to decide is left
            to the rows after it.
        select: selects the batch elements of a crossing, given its plan: a `dispatch.Select`.
        enter: returns what enters the host function, given the `HostCallback` and its
            `LoweredSite`.
        lower: returns a `lowering.Lower`, given the callback and the vmap levels; None if XLA calls
            Python.
        note: returns the `Note` on a callback for the recording, given platform and vmap levels.
        facts: returns fields of the `LoweredSite` of a callback, by name.
        look: warns about a host function that is registered, or called by a drop-in, given its
            `Options` and whether it is registered.
        jvp: ``jvp(call, primals, tangents)`` returns results and their tangents, given a
            `flavors.BoundCall`.
        transpose: ``transpose(call, cotangents, operands)`` returns the cotangents of `operands`.
        varies: whether data decides how many host calls a crossing makes.
    """

    decides: Decides
    applies: Callable[[Any], bool]
    crossing: Callable[[Any], Any] | None = None
    select: Callable[[Any], Any] | None = None
    enter: Callable[[Any, Any], Any] | None = None
    lower: Callable[[Any, Any], Any] | None = None
    note: Callable[[Any, str, Any], Any] | None = None
    facts: Callable[[Any], dict[str, Any]] | None = None
    look: Callable[[Any, Any, bool], None] | None = None
    jvp: Callable[..., Any] | None = None
    transpose: Callable[..., Any] | None = None
    varies: bool = False


_rows: list[Capability] = []


def capability(decides: Decides, applies: Callable[[Any], bool], **does: Any) -> None:
    """Add the row of a capability, see `Capability`."""
    row = Capability(decides, applies, **does)
    bisect.insort(_rows, row, key=lambda other: other.decides)


def capabilities_of(options: Any) -> tuple[Capability, ...]:
    """Return the rows of the callbacks with certain options."""
    return tuple(row for row in _rows if row.applies(options))
