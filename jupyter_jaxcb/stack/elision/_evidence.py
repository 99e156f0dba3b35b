"""What is known of one bind in one compiled program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

from ...recording import Note, Site
from ..core import Bind
from ._hlo import HostCallInstruction
from ._paths import Path


class HostCallIndex(NamedTuple):
    """One lowering of a bind: a callback of the program."""

    number: int  # among the program's callbacks
    elements: int  # host calls of each crossing
    shards: int  # on how many devices of this process a run makes each crossing


@dataclasses.dataclass(frozen=True)
class Evidence:
    """All that is known of one bind in one program.

    Attributes:
        bind: the bind.
        traced: the paths to it in the program as traced.
        kept: those of them that JAX kept when it dropped dead equations, and that may be gone.
        platform: of the program; empty if none of its host calls was lowered.
        indices: of its host calls, one a lowering; None if it was not lowered.
        instructions: its host calls in the optimised program; None if that cannot be read.
        unreadable: why it cannot be read.
        note: what the lowering found worth knowing of its calls.
        loops: in which the bind was made, if it was made for this program; innermost first.
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

    @property
    def shards(self) -> int | None:
        """On how many devices of this process a run makes each call; None: some on more."""
        found = {index.shards for index in self.indices or ()} or {1}
        return found.pop() if len(found) == 1 else None

    @property
    def around(self) -> tuple[tuple[str, int | None], ...]:
        """What the bind was made in, innermost first; nothing if for an earlier program.

        JAX keeps what it has traced: the body of a loop goes into later programs, outside of the
        loops and vmaps that were around it when it was traced.
        """
        return () if self.loops is None else self.bind.around

    @property
    def fruitful(self) -> Sequence[Path]:
        """The paths to it that a run may go: not into a loop of length 0, say."""
        return [path for path in self.traced if not path.is_barren(self.platform)]

    @property
    def may_be_left_out(self) -> bool:
        """See `may_be_left_out`."""
        return may_be_left_out(self.bind.site)

    @property
    def paths(self) -> Sequence[Path]:
        """The paths to it that are looked at: those JAX kept, if it kept any."""
        return self.kept or self.traced


def may_be_left_out(site: Site) -> bool:
    """Whether XLA may merge, move or remove the calls of a site: they have no effect."""
    return site.flavor.endswith(("pure", "buffer"))
