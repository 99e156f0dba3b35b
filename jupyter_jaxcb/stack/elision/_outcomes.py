"""The rules that decide the status of a bind in a compiled program, and its reason."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from ...recording import Note, NoteKind, Outcome, Program, Reason, Status
from ..call import Bind
from ._dropped import Dropped
from ._evidence import Evidence, may_be_elided
from ._hoisting import (
    gone_before_loops,
    intended,
    is_hoisted,
    is_hoisted_and_deduplicated,
    total,
    written,
)
from ._paths import Path, Step

_UNINFORMATIVE = {"closed_call", "eval_jaxpr", "core_call", "shard_map", ""}
SHARED = {"jax buffer"}  # flavors whose equal calls JAX lowers only once in a program


# Why a call is missing whose result nothing needs. In a derivative rule that is expected.
_NOTHING_NEEDS_IT = (Reason.UNUSED, Reason.UNUSED_IN_TRACE, Reason.OPTIMIZED_AWAY)


def outcome(seen: Evidence, program: Program) -> Outcome:
    """Return the outcome of one bind in one program."""
    return _as_expected(seen.bind, _outcome(seen, program))


def _as_expected(bind: Bind, found: Outcome) -> Outcome:
    """Return `found` as a call that nobody asked for, if a derivative rule made it in vain."""
    if bind.in_rule and found.reason in _NOTHING_NEEDS_IT:
        return dataclasses.replace(found, reason=Reason.NOT_NEEDED, written=0)
    return found


def _outcome(seen: Evidence, program: Program) -> Outcome:
    path = seen.traced[0]
    make = functools.partial(
        Outcome,
        site=seen.bind.site,
        program=program,
        index=seen.indices[0].number if seen.indices else -1,
        traced_paths=len(seen.traced),
        written=None if path.varies else written(seen),
        around=tuple(_step_words(step) for step in path.steps if not step.of_vmap),
        stack=_stack(seen.instructions[0].op_name) if seen.instructions else (),
    )
    if _is_shared(seen):
        return make(status=Status.UNKNOWN, reason=Reason.LOWERED_TOGETHER)
    if seen.indices is None or all(p.elements == 0 for p in seen.traced):
        return make(status=Status.UNUSED, compiled=0, reason=_why_unused(seen))
    if seen.instructions is None:
        return make(status=Status.UNKNOWN, reason=Reason.UNREADABLE, unreadable=seen.unreadable)
    if not seen.instructions:
        return make(status=Status.OPTIMIZED_AWAY, compiled=0, reason=_why_optimized_away(seen))
    evaluated = [one for one in seen.instructions if one.times != 0]
    if not evaluated:
        return make(status=Status.OPTIMIZED_AWAY, compiled=0, reason=Reason.CONDITION_SKIPPED)
    calls = None if path.varies else total([one.calls for one in seen.instructions])
    found = make(
        status=Status.KEPT, compiled=calls, notes=_notes(seen), instructions=len(seen.instructions)
    )
    if len(evaluated) < len(seen.instructions):
        return dataclasses.replace(
            found, status=Status.DEDUPLICATED, reason=Reason.CONDITION_PARTLY_SKIPPED
        )
    return _partly_elided(seen, found)


def _is_shared(seen: Evidence) -> bool:
    """Return whether its call was lowered together with an equal call."""
    if seen.indices is not None or seen.bind.site.flavor not in SHARED:
        return False
    return bool(seen.kept)


def dropped_outcome(vanished: Dropped, program: Program) -> Outcome:
    """Return the outcome of a bind that JAX dropped while it traced the program."""
    site, reason = vanished.bind.site, Reason.UNUSED_IN_TRACE
    if vanished.shape_only:
        reason = Reason.SHAPE_ONLY
    elif site.flavor == "jax io":
        reason = Reason.IO_IN_DERIVATIVE
    elif not may_be_elided(site):
        reason = Reason.DEAD_IN_TRACE
    found = Outcome(site, program, Status.UNUSED, traced_paths=0, compiled=0, reason=reason)
    return _as_expected(vanished.bind, found)


def _partly_elided(seen: Evidence, found: Outcome) -> Outcome:
    """Return `found` as deduplicated or hoisted if the program has fewer calls than the source."""
    assert seen.instructions is not None
    paths, made = _places(seen.kept), len(seen.instructions)
    unrolled = any(len(path.depths) > 1 for path in seen.traced)
    deduplicated = functools.partial(
        dataclasses.replace, found, status=Status.DEDUPLICATED, unrolled=unrolled
    )
    if seen.may_be_elided and (gone := gone_before_loops(seen)):
        return deduplicated(reason=Reason.DEDUPLICATED, call_paths=made + gone)
    if made < paths and seen.may_be_elided:
        outside = is_hoisted_and_deduplicated(seen)
        reason = Reason.DEDUPLICATED_AND_HOISTED if outside else Reason.DEDUPLICATED
        return deduplicated(reason=reason, call_paths=paths)
    wanted = _places(intended(seen))
    if paths < wanted and made < wanted:
        hoisted = is_hoisted(seen)
        reason = Reason.PARTLY_UNUSED_AND_HOISTED if hoisted else Reason.PARTLY_UNUSED
        return deduplicated(reason=reason, call_paths=wanted)
    if is_hoisted(seen):
        if _is_more(found.compiled, found.written):
            notes = (*found.notes, Note(NoteKind.OUT_OF_EMPTY_LOOP))
            return dataclasses.replace(found, notes=notes)
        return dataclasses.replace(found, status=Status.HOISTED, reason=Reason.HOISTED)
    return found


def _is_more(compiled: int | None, written: int | None) -> bool:
    return compiled is not None and written is not None and compiled > written


def _places(paths: Sequence[Path]) -> int:
    """Count the places that `paths` lead to: a path into an unrolled loop leads to several."""
    return sum(len(path.depths) for path in paths)


def _why_unused(seen: Evidence) -> Reason:
    if not seen.reachable:
        return _why_unreachable(seen)
    return Reason.UNUSED if seen.may_be_elided else Reason.DEAD_CODE


def _why_unreachable(seen: Evidence) -> Reason:
    """Return the reason why no run takes any of its paths."""
    if all(any(level.is_empty for level in p.levels) for p in seen.traced):
        return Reason.EMPTY_BATCH
    if all(any(s.of_vmap and s.length == 0 for s in p.steps) for p in seen.traced):
        return Reason.EMPTY_BATCH
    if any(step.length == 0 for p in seen.traced for step in p.steps):
        return Reason.EMPTY_LOOP
    if any(step.reached is False for p in seen.traced for step in p.steps):
        return Reason.UNREACHABLE_BRANCH
    return Reason.OTHER_PLATFORM


def _why_optimized_away(seen: Evidence) -> Reason:
    if not seen.kept:
        return _why_unreachable(seen)
    if seen.may_be_elided:
        return Reason.OPTIMIZED_AWAY
    inside = any(step.kind in ("cond", "while", "scan") for p in seen.kept for step in p.steps)
    return Reason.UNREACHABLE_BRANCH if inside else Reason.UNREACHABLE


def _notes(seen: Evidence) -> tuple[Note, ...]:
    notes = [seen.note] if seen.note else []
    any_batched = any(p.levels or p.batched for p in seen.paths)
    branches = sum(kind == "cond" for kind, _ in seen.around)
    for path in seen.paths:
        steps = path.inside_jit()
        if any_batched and branches > sum(step.kind == "cond" for step in steps):
            notes.append(Note(NoteKind.ALL_BRANCHES_RUN))
        if any(step.masks for step in path.steps) and any_batched:
            notes.append(Note(NoteKind.FINISHED_ELEMENTS_RUN))
        vmaps = tuple(size or 0 for kind, size in reversed(seen.around) if kind == "vmap")
        if vmaps and not any_batched:
            notes.append(Note(NoteKind.UNBATCHED, vmaps))
    return tuple(dict.fromkeys(notes))


def _step_words(step: Step) -> str:
    name = step.name or step.kind
    return name if step.length is None else f"{name} of {step.length}"


def _stack(op_name: str) -> tuple[str, ...]:
    """Split ``jit(f)/vmap()/while/body/closed_call/primitive``, without uninformative parts."""
    _program, *parts = op_name.split("/")
    words = [part.removesuffix("()") for part in parts[:-1] if part not in _UNINFORMATIVE]
    text = "/".join(words).replace("/body", ":body").replace("while/cond", "while:cond")
    text = text.replace("cond/branch_", "cond:branch_")
    return tuple(word.replace(":", "/") for word in text.split("/") if word)
