"""Binds that JAX drops while it traces: they are in no program, not even before dead equations go.

A derivative keeps of an inner jit, a loop or a checkpoint what it needs; a function of which only
the shape is asked for leaves nothing. Such a bind belongs to the program of the jitted function
that was being called for the first time when it was made: its frame is on the stack then, and is
still there when that program is lowered.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

from ...recording import Site
from ..core import Bind, Found
from ._paths import Path, sites

Loops = tuple[tuple[str, int | None], ...]  # kind and length, innermost first
# By bind, and by the name and the paths of a program that it was made for.
_made_in: weakref.WeakKeyDictionary[Bind, dict[Any, Loops]] = weakref.WeakKeyDictionary()


class Dropped(NamedTuple):
    """A bind that is not in the program it was made for."""

    bind: Bind
    shape_only: bool  # only the shape of its result was asked for


class _Waiting:
    """Binds of one thread, by the outermost call that they belong to: when it ends, all end."""

    def __init__(self) -> None:
        self.binds: dict[FrameType, list[tuple[Bind, Found]]] = {}

    def all(self) -> list[tuple[Bind, Found]]:
        return [entry for entries in self.binds.values() for entry in entries]


_threads: weakref.WeakSet[_Waiting] = weakref.WeakSet()


class PendingBinds(threading.local):
    """The binds of this thread whose program is not lowered yet."""

    def __init__(self) -> None:
        # The frames are held so that no later frame can be taken for one of them; no longer than
        # until the next bind after the call that they belong to has ended, or `forget_all`.
        self._own = _Waiting()
        _threads.add(self._own)

    def bound(self, bind: Bind, found: Found) -> None:
        """Notes a bind; forgets those of calls that have ended."""
        self._forget(found.dispatches)
        if found.dispatches:
            self._own.binds.setdefault(found.dispatches[-1], []).append((bind, found))

    def executed(self, bind: Bind) -> None:
        """A bind is carried out at once."""
        for entries in self._own.binds.values():
            for place in reversed(range(len(entries))):  # mostly the last one
                if entries[place][0] is bind:
                    del entries[place]
                    return

    def loops(
        self, dispatch: FrameType | None, name: str, paths: Mapping[Bind, Sequence[Path]]
    ) -> dict[Bind, Loops]:
        """The loops that binds of the program that `dispatch` lowers now were made in.

        Those of binds that were made for it, now or when it was lowered before: JAX lowers a
        function again for another device, or after it was only asked about, and traces it once.

        Args:
            dispatch: the call that has the program lowered.
            name: of the program.
            paths: in which it reaches each bind.
        """
        now = {
            bind: () if _is_of_rule(found) else found.loops[found.dispatches.index(dispatch)]
            for bind, found in self._own.all()
            if dispatch in found.dispatches
        }
        for bind, own in paths.items():
            program = name, tuple(path.steps for path in own)
            if bind in now:
                _made_in.setdefault(bind, {})[program] = now[bind]
            elif program in _made_in.get(bind, {}):
                now[bind] = _made_in[bind][program]
        return now

    def vanished(self, dispatch: FrameType | None, jaxpr: Any) -> list[Dropped]:
        """The binds made for the program that `dispatch` lowers now and that are not in it.

        A site that is in it by another bind is there: JAX traces some functions twice.
        """
        if not self._own.binds:
            return []
        there = sites(jaxpr)
        own = [entry for entry in self._own.all() if dispatch in entry[1].dispatches]
        # What is in a program that runs while another one is traced is not to be in that one.
        for entries in self._own.binds.values():
            entries[:] = [
                entry
                for entry in entries
                if dispatch not in entry[1].dispatches and entry[0].site not in there
            ]
        gone: dict[Site, Dropped] = {}
        for bind, found in own:
            if bind.site not in there and not _may_be_replaced(found):
                gone.setdefault(bind.site, Dropped(bind, "shape" in found.kinds))
        return list(gone.values())

    def _forget(self, running: Sequence[FrameType]) -> None:
        for call in [call for call in self._own.binds if call not in running]:
            del self._own.binds[call]


def _is_of_rule(found: Found) -> bool:
    """Whether it is of a rule of differentiation: not all that one answers is asked for."""
    return not found.kinds.isdisjoint({"rule", "look"})


def _may_be_replaced(found: Found) -> bool:
    """Whether another bind may stand for it: a derivative takes a rule's own in its place."""
    return "look" in found.kinds or found.kinds.issuperset({"rule", "derivative"})


def forget_all() -> None:
    """Forgets the binds of all threads: nobody listens any more."""
    for waiting in list(_threads):
        waiting.binds = {}
