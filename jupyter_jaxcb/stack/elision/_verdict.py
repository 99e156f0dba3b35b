"""Compare what a program's text asks for with what is made of it: the status of each bind.

The calls made are those of the optimized program, and their number is exact. Why some are missing
is told only where it is known; *fewer* is said where calls were both removed and moved, or where it
cannot be told. What became of a call site over all programs and runs is in
`report/summary/_status.py`.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from ...recording import Note, NoteKind, Outcome, Program, Reason, Site, Status
from ..call import Bind
from ._asked import EMPTY_BATCH, EMPTY_LOOP, LOOPS, OTHER_BRANCH, OTHER_PLATFORM, Path, Step
from ._made import HostCall

LOWERED_ONCE = "jax buffer"  # flavor whose equal calls JAX lowers only once in a program
_DEAD_CODE = "XLA proved that the program never reaches it"
_UNINFORMATIVE = {"closed_call", "eval_jaxpr", "core_call", "shard_map", ""}


class HostCallIndex(NamedTuple):
    """One lowering of a bind, as a callback of the program."""

    number: int  # its index among the program's callbacks
    elements: int  # host calls for each crossing
    shards: int  # number of devices of this process that make each crossing


def may_be_elided(site: Site) -> bool:
    """Return whether XLA may deduplicate, move or remove calls: the flavor has no side effects."""
    return site.flavor.endswith(("pure", "buffer"))


@dataclasses.dataclass(frozen=True)
class Evidence:
    """The facts about one bind in one compiled program.

    Attributes:
        bind: the bind.
        paths: the paths to it in the jaxpr, at least one.
        indices: its host calls, one for each lowering; None if it was not lowered.
        made: its host calls in the optimized program; None if that cannot be read.
        unreadable: why the optimized program cannot be read.
        note: a note about its calls, from the lowering.
        loops: the loops of the program text around the bind, innermost first; None if it was made
            for another program.
        differentiated: whether a part of the program is differentiated.
        lowered_together: whether its call was lowered together with an equal call.
    """

    bind: Bind
    paths: Sequence[Path]
    indices: Sequence[HostCallIndex] | None
    made: Sequence[HostCall] | None
    unreadable: str = ""
    note: Note | None = None
    loops: tuple[Step, ...] | None = None
    differentiated: bool = False
    lowered_together: bool = False

    @functools.cached_property
    def shards(self) -> int | None:
        """The number of devices of this process that make each call; None if it varies."""
        shards = {index.shards for index in self.indices or ()} or {1}
        return shards.pop() if len(shards) == 1 else None

    @property
    def traced_in(self) -> tuple[Step, ...]:
        """The loops and branches in which the bind was traced, innermost first, up to a jit."""
        return tuple(step for step in self.bind.around if step[0] in (*LOOPS, "cond"))

    @functools.cached_property
    def asked(self) -> list[Path]:
        """The paths that are calls in the program text.

        Not those that no run takes, nor those on which a checkpoint runs again. If XLA keeps a call
        that no run takes, as that of jaxlib 0.10.0 may, its paths are all that there is.
        """
        taken = [path for path in self.paths if not path.never] or list(self.paths)
        return [path for path in taken if not path.again] or taken

    @functools.cached_property
    def loops_left(self) -> tuple[Step, ...] | None:
        """The loops in the program text of which a derivative took out the bind; None if none.

        JAX traces a function once and may use it inside and outside of loops, so no path is in as
        many loops as the trace. While it lowers its hijax operations to ``eval_jaxpr``, it removes
        unused paths unseen.
        """
        if self.loops is None or any(("eval_jaxpr", None) in path.steps for path in self.paths):
            return None
        inside, whole = _turning(self.bind.around), _turning(self.loops)
        if inside and all(len(_turning(path.inside_jit)) < len(inside) for path in self.paths):
            return inside
        if whole and all(len(_turning(path.steps)) < len(whole) for path in self.paths):
            return self.loops
        return None


def outcome(seen: Evidence, program: Program) -> Outcome:
    """Return the outcome of one bind in one program."""
    varies = seen.paths[0].varies
    asked = None if varies else _asked(seen)
    made = None if varies or seen.made is None else _total([call.calls for call in seen.made])
    if asked is not None and made is not None and any(path.again for path in seen.paths):
        # The backward pass runs a call of a checkpoint again only if it needs it.
        asked = max(
            asked, min(made, _total([path.calls for path in seen.paths], seen.shards or 1) or 0)
        )
    status, reason, facts = _without_calls(seen) or _with_calls(seen, asked, made)
    about: dict[str, Any] = {
        "index": seen.indices[0].number if seen.indices else -1,
        "written": 0 if reason is Reason.NOT_NEEDED else asked,
        "around": seen.paths[0].words,
        "stack": _stack(seen.made[0].op_name) if seen.made else (),
    }
    if status in (Status.UNUSED, Status.OPTIMIZED_AWAY):
        about["compiled"] = 0
    elif reason is Reason.MAY_BE_HOISTED or status is not Status.UNKNOWN:
        about |= {"compiled": made, "instructions": len(seen.made or ())}
        about["notes"] = _notes(seen) if status is not Status.UNKNOWN else ()
    return Outcome(seen.bind.site, program, status, reason=reason, **(about | facts))


def dropped_outcome(bind: Bind, transposed: bool, program: Program) -> Outcome:
    """Return the outcome of a bind that JAX dropped while it traced the program.

    Args:
        bind: the bind.
        transposed: whether it was traced for the transpose of a linear function, which
            `jax.linear_transpose` does not call.
        program: the program.
    """
    needless = transposed or bind.in_rule
    if needless and (transposed or may_be_elided(bind.site)):
        reason = Reason.NOT_NEEDED
    elif bind.site.flavor == "jax io":
        reason = Reason.IO_IN_DERIVATIVE
    elif may_be_elided(bind.site):
        reason = Reason.UNUSED
    else:
        reason = Reason.NEVER_REACHED  # JAX keeps side effects
    written = 0 if reason is Reason.NOT_NEEDED else None
    return Outcome(
        bind.site, program, Status.UNUSED, written=written, compiled=0, reason=reason,
        detail=_DEAD_IN_TRACE if reason is Reason.NEVER_REACHED else "",
    )  # fmt: skip


_DEAD_IN_TRACE = "JAX removed it as dead code while tracing"
_Verdict = tuple[Status, Reason | None, dict[str, Any]]


def _without_calls(seen: Evidence) -> _Verdict | None:
    """Return the verdict on a bind that the program does not call, as far as is known."""
    is_lowered = seen.indices is not None and any(path.elements for path in seen.paths)
    if seen.lowered_together:
        return Status.UNKNOWN, Reason.LOWERED_TOGETHER, {}
    if is_lowered and seen.made is None:
        return Status.UNKNOWN, Reason.UNREADABLE, {"detail": seen.unreadable}
    if is_lowered and seen.made:
        if any(call.times != 0 for call in seen.made):
            return None
        return Status.OPTIMIZED_AWAY, Reason.CONDITION_SKIPPED, {}
    status = Status.OPTIMIZED_AWAY if is_lowered else Status.UNUSED
    never = {path.never for path in seen.paths}
    if "" not in never:
        why = next((one for one in (EMPTY_LOOP, OTHER_BRANCH, OTHER_PLATFORM) if one in never), "")
        reason = Reason.OTHER_PLATFORM if why == OTHER_PLATFORM else Reason.NEVER_REACHED
        return status, reason, {"detail": why or EMPTY_BATCH}
    if not may_be_elided(seen.bind.site):  # JAX and XLA keep side effects that a run can reach
        if not is_lowered and all(("remat", None) in path.steps for path in seen.paths):
            return status, Reason.UNUSED_CHECKPOINT, {}
        inside = any(kind in (*LOOPS, "cond") for path in seen.paths for kind, _ in path.steps)
        return status, Reason.NEVER_REACHED, {"detail": OTHER_BRANCH if inside else _DEAD_CODE}
    if seen.bind.in_rule or all(path.derived for path in seen.paths):
        return status, Reason.NOT_NEEDED, {}
    if empty := next((path.empty for path in seen.paths if path.empty), ""):
        return status, Reason.UNUSED, {"detail": empty}
    return status, Reason.OPTIMIZED_AWAY if is_lowered else Reason.UNUSED, {}


def _with_calls(seen: Evidence, asked: int | None, made: int | None) -> _Verdict:
    """Return the verdict on a bind that the optimized program calls."""
    calls = [call for call in seen.made or () if call.times != 0]
    if len(calls) < len(seen.made or ()):
        return Status.FEWER, Reason.CONDITION_SKIPPED, {}
    # The loops around each call, in the text and as made.
    text = Counter(depth for path in seen.asked for depth in path.depths)
    early = Counter(depth for path in seen.asked for depth in path.depths_early) - text
    again = Counter(depth for path in seen.paths if path.again for depth in path.depths)
    depths = Counter(_depth(call, seen) for call in calls)
    missing, elsewhere = text + early - depths, depths - text - early - again
    moved = seen.loops_left is not None
    if moved and asked is not None and made is not None and made > asked:
        return Status.KEPT, None, {"notes": (*_notes(seen), Note(NoteKind.OUT_OF_EMPTY_LOOP))}
    if not may_be_elided(seen.bind.site):  # XLA keeps each call where it is
        status = Status.HOISTED if moved else Status.KEPT
    elif asked is not None and made is not None and made >= asked:
        status = Status.KEPT
    elif early and missing.total() != elsewhere.total():
        status = Status.UNKNOWN  # of a predicate: the loop is never entered, or one call is enough
    elif missing.total() > elsewhere.total():
        left = any(call.named > call.loops + call.gone for call in calls)
        status = Status.FEWER if elsewhere or moved or left else Status.DEDUPLICATED
    elif moved or missing:
        status = Status.HOISTED if moved or _sum(depths) < _sum(text + early) else Status.FEWER
    else:
        status = Status.KEPT if asked is None or made is None else Status.FEWER
    if status is Status.HOISTED and asked is None and any(call.unsure for call in calls):
        status = Status.UNKNOWN
    if status is Status.UNKNOWN or (status is Status.KEPT and _may_be_moved(seen)):
        detail = "XLA" if status is Status.UNKNOWN else ""
        return Status.UNKNOWN, Reason.MAY_BE_HOISTED, {"written": None, "detail": detail}
    if status is Status.KEPT:
        return status, None, {}
    facts = {
        "call_paths": text.total() + early.total(),
        "unrolled": any(len(path.depths) > 1 for path in seen.paths),
    }
    return status, Reason(status), {} if status is Status.HOISTED else facts


def _depth(call: HostCall, seen: Evidence) -> int:
    """Count the loops that a call is still in, or was until XLA removed them.

    Scans of one iteration do not count, although XLA keeps some of them as loops, and does not
    always know the number of iterations.
    """
    path = seen.asked[0]
    is_plain = len(seen.asked) == 1 and path.depths_early == path.depths
    if is_plain and not call.gone and len(path.turning) == call.named:
        return sum(path.turning[: call.loops])  # XLA moves a call out of the innermost loop first
    single = min(path.turning.count(False) for path in seen.asked)
    return call.loops + call.gone - min(call.once + call.gone, single)


def _sum(depths: Counter[int]) -> int:
    return sum(depths.elements())


# ---- loops that a derivative takes a call out of


def _asked(seen: Evidence) -> int | None:
    """Return the host calls of a run in the program text; None if they depend on data."""
    if seen.shards is None:
        return None
    loops = seen.loops_left
    if loops is None:
        return _total([path.calls for path in seen.asked], seen.shards)
    counts = []
    for path in seen.asked:
        inside = path.inside_jit if loops is not seen.loops else path.steps
        own = [length for kind, length in inside if kind == "scan" and length]
        around = [length for _, length in loops if length is not None]
        if path.calls is None or len(around) < len(loops):
            return None
        counts.append(path.calls // math.prod(own) * math.prod(around))
    # Some of several paths may be outside of the loop in the text, too.
    return None if loops is seen.loops and len(counts) > 1 else _total(counts, seen.shards)


def is_moved(bind: Bind) -> bool:
    """Return whether a bind that is executed eagerly was traced in a loop of several steps."""
    return bool(_turning(bind.around)) and not getattr(jax.config, "jax_disable_jit", False)


def _may_be_moved(seen: Evidence) -> bool:
    """Return whether a derivative may have moved the bind out of a loop, unseen."""
    traced = _loops(seen.traced_in)
    paths = [path.inside_jit for path in seen.paths]
    deepest = max(map(_loops, paths))
    if seen.loops is None and deepest < traced:
        # An earlier trace may have been in more loops than this program has. But its innermost
        # loop is around the bind in each program that uses the trace; only derivatives move it out.
        return seen.differentiated or (deepest == 0 and seen.traced_in[0][0] in LOOPS)
    # The predicate of a vmapped loop is evaluated before it, too.
    if all(path.exact for path in seen.paths) and not may_be_elided(seen.bind.site):
        return False
    # A function under `jax.checkpoint` is traced once, and may be used in a loop and outside.
    turns = {len(_turning(path)) for path in paths}
    return seen.differentiated and len(turns) > 1 and min(turns) < traced <= deepest


def _turning(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the loops in `steps`, without scans of one iteration."""
    return tuple(step for step in steps if step[0] in LOOPS and step != ("scan", 1))


def _loops(steps: Sequence[Step]) -> int:
    """Count loops, also those of one iteration: in another program, they may have had more."""
    return sum(kind in LOOPS for kind, _ in steps)


def _total(counts: Sequence[int | None], each: int = 1) -> int | None:
    """Return the sum of `counts` times `each`; None if a count is unknown."""
    return None if None in counts and each else sum(filter(None, counts)) * each


# ---- remarks on its calls


def _notes(seen: Evidence) -> tuple[Note, ...]:
    notes = [seen.note] if seen.note else []
    around = () if seen.loops is None else seen.bind.around
    any_batched = any(path.is_batched for path in seen.paths)
    several = any(path.has_several_elements for path in seen.paths)
    branches = sum(kind == "cond" for kind, _ in around)
    vmaps = tuple(size or 0 for kind, size in reversed(around) if kind == "vmap")
    for path in seen.paths:
        if path.exact:
            continue
        if any_batched and branches > sum(kind == "cond" for kind, _ in path.inside_jit):
            notes.append(Note(NoteKind.ALL_BRANCHES_RUN))
        if path.masked_loop and several:
            notes.append(Note(NoteKind.FINISHED_ELEMENTS_RUN))
        if vmaps and not any_batched:
            notes.append(Note(NoteKind.UNBATCHED, vmaps))
    # A function under one jax.jit is one bind, which may be reached outside of a checkpoint, too.
    first = sum(not path.again for path in seen.paths)
    if 0 < first < min(len(seen.paths), len(seen.made or ())):
        notes.append(Note(NoteKind.RUN_AGAIN))
    return tuple(dict.fromkeys(notes))


def _stack(op_name: str) -> tuple[str, ...]:
    """Split ``jit(f)/vmap()/while/body/closed_call/primitive``, without uninformative parts."""
    _program, *parts = op_name.split("/")
    words = [part.removesuffix("()") for part in parts[:-1] if part not in _UNINFORMATIVE]
    text = "/".join(words).replace("/body", ":body").replace("while/cond", "while:cond")
    text = text.replace("cond/branch_", "cond:branch_")
    return tuple(word.replace(":", "/") for word in text.split("/") if word)
