"""What became of one bind in one compiled program: a table from evidence to status and reason.

What became of its call site, over all programs and runs, is in `report/summary/_status.py`.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from ...recording import Note, NoteKind, Reason, Rule, Status
from ._dropped import Dropped
from ._evidence import Evidence, may_be_elided
from ._hlo import HostCallInstruction
from ._hoisting import (
    count_before_loops,
    gone_before_loops,
    intended,
    is_hoisted,
    is_hoisted_and_deduplicated,
    may_be_hoisted,
    may_be_partly_hoisted,
    total,
    written,
)
from ._paths import Path

SHARED = {"jax buffer"}  # flavors whose equal calls JAX lowers only once in a program


@dataclasses.dataclass(frozen=True)
class Seen:
    """The evidence about a bind that is in the program as traced, and what follows from it."""

    evidence: Evidence

    @property
    def is_shared(self) -> bool:
        """Whether its call was lowered together with an equal call."""
        found = self.evidence
        return bool(found.indices is None and found.bind.site.flavor in SHARED and found.kept)

    @property
    def is_unlowered(self) -> bool:
        """Whether JAX lowered no call of it that has a batch element."""
        return self.evidence.indices is None or all(p.elements == 0 for p in self.evidence.traced)

    @property
    def is_gone(self) -> bool:
        """Whether the optimized program was read and has no call of it."""
        return self.evidence.instructions is not None and not self.evidence.instructions

    @functools.cached_property
    def evaluated(self) -> Sequence[HostCallInstruction]:
        """Its calls in the optimized program without those that XLA never evaluates."""
        return [one for one in self.evidence.instructions or () if one.times != 0]

    @property
    def made(self) -> int:
        """The number of its calls in the optimized program."""
        return len(self.evidence.instructions or ())

    @functools.cached_property
    def calls(self) -> int | None:
        """Host calls per run as compiled; None: they depend on data."""
        if self.evidence.traced[0].varies:
            return None
        return total([one.calls for one in self.evidence.instructions or ()])

    @functools.cached_property
    def written(self) -> int | None:
        """Host calls per run in the program text; None: they depend on data."""
        return None if self.evidence.traced[0].varies else written(self.evidence)

    @functools.cached_property
    def places(self) -> int:
        """The number of places that its kept paths lead to."""
        return _places(self.evidence.kept) + self.before_loops

    @functools.cached_property
    def wanted(self) -> int:
        """The number of places that the source asks for."""
        return _places(intended(self.evidence)) + self.before_loops

    @functools.cached_property
    def before_loops(self) -> int:
        """The number of its places in predicates before loops that XLA has not removed."""
        return count_before_loops(self.evidence)

    @functools.cached_property
    def gone_before_loops(self) -> int:
        """As `before_loops`, of loops that XLA may have removed; those without a call."""
        if self.before_loops or not self.may_be_elided:
            return 0
        return gone_before_loops(self.evidence)

    @property
    def has_fewer(self) -> bool:
        """Whether XLA kept fewer calls than there are places."""
        return self.may_be_elided and self.made < self.places

    @property
    def is_partly_unused(self) -> bool:
        """Whether JAX kept fewer places than the source asks for."""
        return self.wanted > self.places and self.wanted > self.made

    @functools.cached_property
    def is_hoisted(self) -> bool:
        """Whether a call runs outside of a loop that is around it in the source."""
        return is_hoisted(self.evidence)

    @property
    def is_more(self) -> bool:
        """Whether a run makes more calls than the program text asks for."""
        return self.calls is not None and self.written is not None and self.calls > self.written

    @property
    def may_be_elided(self) -> bool:
        """See `_evidence.may_be_elided`."""
        return self.evidence.may_be_elided

    @property
    def in_derivative(self) -> bool:
        """Whether a derivative rule made it, or it is differentiated code that uses its result."""
        return self.evidence.bind.in_rule or all(path.derived for path in self.evidence.traced)


def _places(paths: Sequence[Path]) -> int:
    """Count the places that `paths` lead to: a path into an unrolled loop leads to several."""
    return sum(len(path.depths) for path in paths)


def _has_empty_vmap(seen: Seen) -> bool:
    traced = seen.evidence.traced
    return all(any(level.is_empty for level in path.levels) for path in traced) or all(
        any(step.of_vmap and step.length == 0 for step in path.steps) for path in traced
    )


def _any_step(test: Callable[[Any], bool]) -> Callable[[Seen], bool]:
    return lambda seen: any(test(step) for path in seen.evidence.traced for step in path.steps)


def _is_checkpointed(seen: Seen) -> bool:
    return all(any(s.kind == "remat" for s in path.steps) for path in seen.evidence.traced)


def _is_inside(seen: Seen) -> bool:
    kinds = ("cond", "while", "scan")
    return any(step.kind in kinds for path in seen.evidence.kept for step in path.steps)


def _no_path(
    where: str, holds: Callable[[Seen], Any], status: Status
) -> tuple[Rule[Seen], Rule[Seen], Rule[Seen], Rule[Seen]]:
    """Return the rows of a bind that no run can reach, whatever the data."""

    def row(evidence: str, test: Callable[[Seen], Any], reason: Reason, why: str) -> Rule[Seen]:
        return Rule(
            f"{where}; {evidence}", lambda seen: holds(seen) and test(seen), status, reason, why
        )

    return (
        row(
            "each path to it is under a vmap over an axis of size 0",
            _has_empty_vmap,
            Reason.EMPTY_BATCH,
            "there is no batch element to call it for",
        ),
        row(
            "no path can be taken, and one leads into a loop of length 0",
            _any_step(lambda step: step.length == 0),
            Reason.EMPTY_LOOP,
            "the loop never runs its body",
        ),
        row(
            "no path can be taken, and one leads into a branch whose predicate is constant",
            _any_step(lambda step: step.reached is False),
            Reason.UNREACHABLE_BRANCH,
            "the predicate selects another branch in every run",
        ),
        row(
            "no path can be taken on this platform",
            lambda seen: True,
            Reason.OTHER_PLATFORM,
            "what is left are branches for other platforms",
        ),
    )


def _none_written(seen: Any) -> dict[str, int]:
    """Nobody asked for the call, so it is not one that is missing."""
    return {"written": 0}


_DERIVATIVE = "the derivative does not need all that the rule, or the function, computes"

# Binds that JAX dropped while it traced the program.
WHILE_TRACING: tuple[Rule[Dropped], ...] = (
    Rule(
        "not in the traced program, and made by a function of which JAX took the transpose",
        lambda dropped: dropped.transposed,
        Status.UNUSED,
        Reason.NOT_NEEDED,
        "`jax.linear_transpose` does not call the function itself",
        _none_written,
    ),
    Rule(
        "not in the traced program; an io callback of JAX",
        lambda dropped: dropped.bind.site.flavor == "jax io",
        Status.UNUSED,
        Reason.IO_IN_DERIVATIVE,
        "JAX keeps its io callbacks, except where a derivative traces a part again",
    ),
    Rule(
        "not in the traced program, with side effects",
        lambda dropped: not may_be_elided(dropped.bind.site),
        Status.UNUSED,
        Reason.DEAD_IN_TRACE,
        "JAX keeps side effects, so the program cannot reach it",
    ),
    Rule(
        "not in the traced program, and made by a derivative rule",
        lambda dropped: dropped.bind.in_rule,
        Status.UNUSED,
        Reason.NOT_NEEDED,
        _DERIVATIVE,
        _none_written,
    ),
    Rule(
        "not in the traced program",
        lambda dropped: True,
        Status.UNUSED,
        Reason.UNUSED_IN_TRACE,
        "JAX drops what no result of the part that it traces needs",
    ),
)

# Binds in the program as traced: those that JAX did not lower, those that XLA removed, the others.
COMPILED: tuple[Rule[Seen], ...] = (
    Rule(
        "not lowered, but an equal call of a flavor that JAX lowers once is",
        lambda seen: seen.is_shared,
        Status.UNKNOWN,
        Reason.LOWERED_TOGETHER,
        "one lowered call makes the calls of both lines",
    ),
    *_no_path(
        "not lowered",
        lambda seen: seen.is_unlowered and not seen.evidence.reachable,
        Status.UNUSED,
    ),
    Rule(
        "not lowered, with side effects, and in a checkpointed function on each path to it",
        lambda seen: seen.is_unlowered and not seen.may_be_elided and _is_checkpointed(seen),
        Status.UNUSED,
        Reason.UNUSED_CHECKPOINT,
        "JAX drops a checkpoint without used results and arguments, with its side effects",
    ),
    Rule(
        "not lowered, with side effects",
        lambda seen: seen.is_unlowered and not seen.may_be_elided,
        Status.UNUSED,
        Reason.DEAD_CODE,
        "JAX keeps side effects, so the program cannot reach it",
    ),
    Rule(
        "not lowered; made by a derivative rule, or used in differentiated code",
        lambda seen: seen.is_unlowered and seen.in_derivative,
        Status.UNUSED,
        Reason.NOT_NEEDED,
        _DERIVATIVE,
        _none_written,
    ),
    Rule(
        "not lowered",
        lambda seen: seen.is_unlowered,
        Status.UNUSED,
        Reason.UNUSED,
        "JAX removes what no result of the program needs, before compiling",
    ),
    Rule(
        "the optimized program cannot be read",
        lambda seen: seen.evidence.instructions is None,
        Status.UNKNOWN,
        Reason.UNREADABLE,
        "only the optimized program tells what XLA made of it",
        lambda seen: {"unreadable": seen.evidence.unreadable},
    ),
    *_no_path(
        "lowered, but not in the optimized program",
        lambda seen: seen.is_gone and not seen.evidence.kept,
        Status.OPTIMIZED_AWAY,
    ),
    Rule(
        "lowered, but not in the optimized program; no side effects; of a derivative, as above",
        lambda seen: seen.is_gone and seen.may_be_elided and seen.in_derivative,
        Status.OPTIMIZED_AWAY,
        Reason.NOT_NEEDED,
        _DERIVATIVE,
        _none_written,
    ),
    Rule(
        "lowered, but not in the optimized program; no side effects",
        lambda seen: seen.is_gone and seen.may_be_elided,
        Status.OPTIMIZED_AWAY,
        Reason.OPTIMIZED_AWAY,
        "XLA removes calls without side effects whose results cannot affect the output",
    ),
    Rule(
        "lowered, but not in the optimized program; side effects, in a branch or loop",
        lambda seen: seen.is_gone and _is_inside(seen),
        Status.OPTIMIZED_AWAY,
        Reason.UNREACHABLE_BRANCH,
        "XLA removes side effects only with a branch or loop that is never entered",
    ),
    Rule(
        "lowered, but not in the optimized program; side effects",
        lambda seen: seen.is_gone,
        Status.OPTIMIZED_AWAY,
        Reason.UNREACHABLE,
        "XLA removes side effects only with code that is never reached",
    ),
    Rule(
        "each of its calls is in a loop condition that XLA never evaluates",
        lambda seen: not seen.evaluated,
        Status.OPTIMIZED_AWAY,
        Reason.CONDITION_SKIPPED,
        "XLA knows how often the loop runs",
    ),
    Rule(
        "one of its calls is in a loop condition that XLA never evaluates",
        lambda seen: len(seen.evaluated) < seen.made,
        Status.DEDUPLICATED,
        Reason.CONDITION_PARTLY_SKIPPED,
        "the other calls are made",
    ),
    Rule(
        "a call of a predicate is missing that JAX evaluates once before its loop",
        lambda seen: seen.gone_before_loops,
        Status.DEDUPLICATED,
        Reason.DEDUPLICATED,
        "the copy before the loop decides whether it is entered; it equals another call",
        lambda seen: _removed(seen, seen.made + seen.gone_before_loops),
    ),
    Rule(
        "fewer calls than call paths, and these outside of the loops around them",
        lambda seen: seen.has_fewer and is_hoisted_and_deduplicated(seen.evidence),
        Status.DEDUPLICATED,
        Reason.DEDUPLICATED_AND_HOISTED,
        "equal calls are made once, and arguments that do not change need one call for all steps",
        lambda seen: _removed(seen, seen.places),
    ),
    Rule(
        "fewer calls than call paths",
        lambda seen: seen.has_fewer,
        Status.DEDUPLICATED,
        Reason.DEDUPLICATED,
        "XLA makes one call of equal calls without side effects",
        lambda seen: _removed(seen, seen.places),
    ),
    Rule(
        "fewer call paths than the source has, and a call outside of a loop around it",
        lambda seen: seen.is_partly_unused and seen.is_hoisted,
        Status.DEDUPLICATED,
        Reason.PARTLY_UNUSED_AND_HOISTED,
        "no result needs the other paths, and the rest does not change in its loop",
        lambda seen: _removed(seen, seen.wanted),
    ),
    Rule(
        "fewer call paths than the source has",
        lambda seen: seen.is_partly_unused,
        Status.DEDUPLICATED,
        Reason.PARTLY_UNUSED,
        "no result needs the other paths",
        lambda seen: _removed(seen, seen.wanted),
    ),
    Rule(
        "a call outside of a loop around it, and more calls than the program text asks for",
        lambda seen: seen.is_hoisted and seen.is_more,
        Status.KEPT,
        None,
        "it left a loop of length 0, so nothing is missing",
        lambda seen: {"notes": (Note(NoteKind.OUT_OF_EMPTY_LOOP),)},
    ),
    Rule(
        "a call outside of a loop around it",
        lambda seen: seen.is_hoisted,
        Status.HOISTED,
        Reason.HOISTED,
        "its arguments do not change in the loop",
    ),
    Rule(
        "as many calls as call paths, and fewer loops around them than when the call was traced, "
        "for an earlier program",
        lambda seen: may_be_hoisted(seen.evidence),
        Status.UNKNOWN,
        Reason.TRACED_BEFORE,
        "the loops around it in the program text are known only of the program it was traced for",
        lambda seen: {"written": None, "compiled": seen.calls, "instructions": seen.made},
    ),
    Rule(
        "as many calls as call paths, in a program with a derivative, and some in fewer loops "
        "around them than when the call was traced",
        lambda seen: may_be_partly_hoisted(seen.evidence),
        Status.UNKNOWN,
        Reason.MAY_BE_HOISTED,
        "a derivative moved it, or a checkpointed function that is traced once is used twice",
        lambda seen: {"written": None, "compiled": seen.calls, "instructions": seen.made},
    ),
    Rule(
        "as many calls as the program text asks for",
        lambda seen: True,
        Status.KEPT,
        None,
        "nothing is missing",
    ),
)


def _removed(seen: Seen, call_paths: int) -> dict[str, Any]:
    unrolled = any(len(path.depths) > 1 for path in seen.evidence.traced)
    return {"call_paths": call_paths, "unrolled": unrolled}
