"""The facts about one bind in one compiled program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from ...recording import Note, Site
from ..call import Bind
from ._hlo import HostCallInstruction
from ._paths import Path, Place


class HostCallIndex(NamedTuple):
    """One lowering of a bind, as a callback of the program."""

    number: int  # its index among the program's callbacks
    elements: int  # host calls for each crossing
    shards: int  # number of devices of this process that make each crossing


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The facts about one bind in one program.

    Attributes:
        bind: the bind.
        traced: the paths to it in the jaxpr as traced.
        kept: the paths that remain after JAX's dead-code elimination, and that a run may take.
        platform: the platform of the program; empty if none of its host calls was lowered.
        indices: its host calls, one for each lowering; None if it was not lowered.
        instructions: its host calls in the optimized program; None if that cannot be read.
        unreadable: why the optimized program cannot be read.
        note: a note about its calls, from the lowering.
        loops: the loops around the bind, innermost first; None if it was made for another program.
        predicates: the predicates that the optimized program evaluates before their loop and in it.
        differentiated: whether a part of the program is differentiated.
    """

    bind: Bind
    traced: Sequence[Path]
    kept: Sequence[Path]
    platform: str
    indices: Sequence[HostCallIndex] | None
    instructions: Sequence[HostCallInstruction] | None
    unreadable: str = ""
    note: Note | None = None
    loops: tuple[tuple[str, int | None], ...] | None = None
    predicates: frozenset[Place] = frozenset()
    differentiated: bool = False

    @property
    def shards(self) -> int | None:
        """The number of devices of this process that make each call; None if it varies."""
        found = {index.shards for index in self.indices or ()} or {1}
        return found.pop() if len(found) == 1 else None

    @property
    def around(self) -> tuple[tuple[str, int | None], ...]:
        """The loops, vmaps and branches around the bind, innermost first.

        Empty if the bind was made for an earlier program: JAX caches traced functions, so a loop
        body may be reused in later programs without the loops and vmaps it was traced in.
        """
        return () if self.loops is None else self.bind.around

    @property
    def reachable(self) -> Sequence[Path]:
        """The paths to it that a run may take; not, for one, into a loop of length 0."""
        return [path for path in self.traced if not path.is_unreachable(self.platform)]

    @property
    def may_be_elided(self) -> bool:
        """See `may_be_elided`."""
        return may_be_elided(self.bind.site)

    @property
    def paths(self) -> Sequence[Path]:
        """The paths to it that JAX kept, or all traced paths if it kept none."""
        return self.kept or self.traced


def may_be_elided(site: Site) -> bool:
    """Return whether XLA may deduplicate, move or remove calls: the flavor has no side effects."""
    return site.flavor.endswith(("pure", "buffer"))
