"""What is known of one bind in one compiled program."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from ._callback import Bind
from ._hlo import HostCallInstruction
from ._paths import Path


@dataclasses.dataclass(frozen=True)
class Seen:
    """All that is known of one bind in one program.

    Attributes:
        bind: the bind.
        traced: the ways to it in the program as traced.
        kept: those of them that JAX kept when it dropped dead equations.
        indices: of its host calls; None if it was not lowered.
        instructions: its host calls in the optimised program; None if that cannot be read.
        unreadable: why it cannot be read.
        shards: on how many devices a run makes each of the calls; 0: on those of other processes.
        note: what the lowering found worth knowing of its calls.
        loops: in which the bind was made, if it was made for this program; innermost first.
    """

    bind: Bind
    traced: Sequence[Path]
    kept: Sequence[Path]
    indices: Sequence[int] | None
    instructions: Sequence[HostCallInstruction] | None
    unreadable: str = ""
    shards: int = 1
    note: str = ""
    loops: tuple[tuple[str, int | None], ...] | None = None

    @property
    def around(self) -> tuple[tuple[str, int | None], ...]:
        """What the bind was made in, innermost first; nothing if for an earlier program.

        JAX keeps what it has traced: the body of a loop goes into later programs, outside of the
        loops and vmaps that were around it when it was traced.
        """
        return () if self.loops is None else self.bind.around

    @property
    def ways(self) -> Sequence[Path]:
        """The ways to it that are looked at: those JAX kept, if it kept any."""
        return self.kept or self.traced
