"""Binds that JAX drops while it traces: they are in no program, not even before dead equations go.

A derivative keeps of an inner jit, a loop or a checkpoint what it needs; a function of which only
the shape is asked for leaves nothing. Such a bind belongs to the program of the jitted function
that was being called for the first time when it was made: its frame is on the stack then, and is
still there when that program is lowered.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import FrameType
from typing import Any, NamedTuple

from ..recording import Site
from ._callback import Bind
from ._paths import sites
from ._site import Found


class Vanished(NamedTuple):
    """A bind that is not in the program it was made for."""

    bind: Bind
    shape_only: bool  # only the shape of its result was asked for


class Vanishing(threading.local):
    """The binds of this thread whose program is not lowered yet."""

    def __init__(self) -> None:
        # The frames are held so that no later frame can be taken for one of them; no longer than
        # until the next bind or program after the call that they belong to has ended.
        self._waiting: list[tuple[Bind, Found]] = []

    def bound(self, bind: Bind, found: Found) -> None:
        """Notes a bind; forgets those of calls that have ended."""
        self._forget(found.dispatches)
        if found.dispatches and not found.kinds & {"rule", "look"}:
            self._waiting.append((bind, found))

    def executed(self, bind: Bind) -> None:
        """A bind is carried out at once."""
        if self._waiting:
            self._waiting = [entry for entry in self._waiting if entry[0] is not bind]

    def loops(self, dispatch: FrameType | None) -> dict[Bind, tuple[tuple[str, int | None], ...]]:
        """The loops that the binds of the program that `dispatch` lowers now were made in."""
        return {
            bind: found.loops[found.dispatches.index(dispatch)]
            for bind, found in self._waiting
            if dispatch in found.dispatches
        }

    def vanished(self, dispatch: FrameType | None, jaxpr: Any) -> list[Vanished]:
        """The binds made for the program that `dispatch` lowers now and that are not in it.

        A site that is in it by another bind is there: JAX traces some functions twice.
        """
        if dispatch is None or not self._waiting:
            return []
        own = [entry for entry in self._waiting if dispatch in entry[1].dispatches]
        if not own:
            return []
        there = sites(jaxpr)
        self._waiting = [entry for entry in self._waiting if dispatch not in entry[1].dispatches]
        gone: dict[Site, Vanished] = {}
        for bind, found in own:
            if bind.site not in there:
                gone.setdefault(bind.site, Vanished(bind, "shape" in found.kinds))
        return list(gone.values())

    def _forget(self, running: Sequence[FrameType]) -> None:
        if self._waiting:
            self._waiting = [
                entry for entry in self._waiting if any(f in running for f in entry[1].dispatches)
            ]
