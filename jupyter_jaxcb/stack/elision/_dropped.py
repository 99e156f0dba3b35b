"""Find binds that JAX drops while it traces, before dead-code elimination.

A derivative keeps only the parts of an inner jit, loop or checkpoint that it needs. A bind that it
drops belongs to the program of the jitted function that was being traced when the bind was made:
the frame of that call is on the stack then, and still is when the program is lowered.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence, Set
from types import FrameType
from typing import Any, NamedTuple

from ...recording import Site
from ..call import Bind
from ..trace import Found
from ._asked import Path

Loops = tuple[tuple[str, int | None], ...]  # kind and length, innermost first
# The loops around a bind, by the bind and by the name and paths of its program.
_made_in: weakref.WeakKeyDictionary[Bind, dict[Any, Loops]] = weakref.WeakKeyDictionary()


class Dropped(NamedTuple):
    """A bind that is not in the program it was made for."""

    bind: Bind
    transposed: bool  # it was traced for the transpose of a linear function


class _Waiting:
    """The binds of one thread, by the frame of the outermost jitted call that made them."""

    def __init__(self) -> None:
        self.binds: dict[FrameType, list[tuple[Bind, Found]]] = {}

    def all(self) -> list[tuple[Bind, Found]]:
        return [entry for entries in self.binds.values() for entry in entries]


_threads: weakref.WeakSet[_Waiting] = weakref.WeakSet()


class PendingBinds(threading.local):
    """The binds of this thread whose program is not lowered yet."""

    def __init__(self) -> None:
        # References to the frames keep their identities unique. They are dropped at the first bind
        # after their call has ended, or by `forget_all`.
        self._own = _Waiting()
        _threads.add(self._own)

    def bound(self, bind: Bind, found: Found) -> None:
        """Add a bind, and forget the binds of calls that have ended."""
        self._forget(found.dispatches)
        if found.dispatches:
            self._own.binds.setdefault(found.dispatches[-1], []).append((bind, found))

    def executed(self, bind: Bind) -> None:
        """Remove a bind that is executed eagerly."""
        for entries in self._own.binds.values():
            for place in reversed(range(len(entries))):  # mostly the last one
                if entries[place][0] is bind:
                    del entries[place]
                    return

    def loops(
        self, dispatch: FrameType | None, name: str, paths: Mapping[Bind, Sequence[Path]]
    ) -> dict[Bind, Loops]:
        """Return the loops around each bind of the program that `dispatch` lowers now.

        Only binds made for this program are included, now or at an earlier lowering: JAX traces a
        function once, but lowers it again for another device, or after a call of ``lower``.

        Args:
            dispatch: the frame of the call that lowers the program.
            name: the name of the program.
            paths: the paths to each bind in the program.
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

    def vanished(self, dispatch: FrameType | None, there: Set[Site]) -> list[Dropped]:
        """Return the binds made for the program that `dispatch` lowers now, but missing from it.

        A bind is not missing if the program has another bind of the same call site, because JAX
        traces some functions twice.

        Args:
            dispatch: the frame of the call that lowers the program.
            there: the call sites of the program.
        """
        if not self._own.binds:
            return []
        own = [entry for entry in self._own.all() if dispatch in entry[1].dispatches]
        # A program may run while another one is traced; its binds do not belong to the other one.
        for entries in self._own.binds.values():
            entries[:] = [
                entry
                for entry in entries
                if dispatch not in entry[1].dispatches and entry[0].site not in there
            ]
        # A frame holds the arguments of its call.
        self._own.binds = {call: entries for call, entries in self._own.binds.items() if entries}
        gone: dict[Site, Dropped] = {}
        for bind, found in own:
            if bind.site not in there and not may_be_replaced(bind, found):
                gone.setdefault(bind.site, Dropped(bind, "transpose" in found.kinds))
        return list(gone.values())

    def _forget(self, running: Sequence[FrameType]) -> None:
        for call in [call for call in self._own.binds if call not in running]:
            del self._own.binds[call]


def _is_of_rule(found: Found) -> bool:
    """Return whether a derivative rule made the bind; JAX may not need all results of a rule."""
    return not found.kinds.isdisjoint({"rule", "look"})


def may_be_replaced(bind: Bind, found: Found) -> bool:
    """Return whether nothing is missing without a bind.

    A derivative uses the binds of its rule instead, and `jax.eval_shape` and the like only look at
    a function.
    """
    in_function_of_rule = found.kinds.issuperset({"rule", "derivative"})
    return bind.is_replaced or in_function_of_rule or "look" in found.kinds


def forget_all() -> None:
    """Forget the binds of all threads, when the last recorder stops."""
    for waiting in list(_threads):
        waiting.binds = {}
