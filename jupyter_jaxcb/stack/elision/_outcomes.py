"""Make the outcome of a bind in a compiled program; `_rules` decides its status and reason."""

from __future__ import annotations

from typing import Any

from ...recording import Note, NoteKind, Outcome, Program, Status, decide
from ._dropped import Dropped
from ._evidence import Evidence
from ._paths import Step
from ._rules import COMPILED, WHILE_TRACING, Seen

_UNINFORMATIVE = {"closed_call", "eval_jaxpr", "core_call", "shard_map", ""}
_NO_CALL = (Status.UNUSED, Status.OPTIMIZED_AWAY)


def outcome(found: Evidence, program: Program) -> Outcome:
    """Return the outcome of one bind in one program."""
    seen = Seen(found)
    rule = decide(COMPILED, seen)
    assert rule.status is not None
    more = rule.more(seen) if rule.more else {}
    about: dict[str, Any] = {
        "index": found.indices[0].number if found.indices else -1,
        "traced_paths": len(found.traced),
        "written": seen.written,
        "around": tuple(_step_words(step) for step in found.traced[0].steps if not step.of_vmap),
        "stack": _stack(found.instructions[0].op_name) if found.instructions else (),
        "reason": rule.reason,
    }
    if rule.status in _NO_CALL:
        about["compiled"] = 0
    elif rule.status is not Status.UNKNOWN:
        about |= {"compiled": seen.calls, "instructions": seen.made}
        about["notes"] = (*_notes(found), *more.pop("notes", ()))
    return Outcome(found.bind.site, program, rule.status, **(about | more))


def dropped_outcome(dropped: Dropped, program: Program) -> Outcome:
    """Return the outcome of a bind that JAX dropped while it traced the program."""
    rule = decide(WHILE_TRACING, dropped)
    assert rule.status is not None
    more = rule.more(dropped) if rule.more else {}
    site = dropped.bind.site
    return Outcome(
        site, program, rule.status, traced_paths=0, compiled=0, reason=rule.reason, **more
    )


def _notes(seen: Evidence) -> tuple[Note, ...]:
    notes = [seen.note] if seen.note else []
    any_batched = any(path.is_batched for path in seen.paths)
    several = any(path.has_several_elements for path in seen.paths)
    branches = sum(kind == "cond" for kind, _ in seen.around)
    for path in seen.paths:
        steps = path.inside_jit()
        if any_batched and branches > sum(step.kind == "cond" for step in steps):
            notes.append(Note(NoteKind.ALL_BRANCHES_RUN))
        if any(step.masks for step in path.steps) and several:
            notes.append(Note(NoteKind.FINISHED_ELEMENTS_RUN))
        vmaps = tuple(size or 0 for kind, size in reversed(seen.around) if kind == "vmap")
        if vmaps and not any_batched:
            notes.append(Note(NoteKind.UNBATCHED, vmaps))
    if _is_run_again(seen):
        notes.append(Note(NoteKind.RUN_AGAIN))
    return tuple(dict.fromkeys(notes))


def _is_run_again(seen: Evidence) -> bool:
    """Return whether a checkpoint makes a call twice, which XLA did not undo.

    A function under one jax.jit is one bind, which may be reached outside of the checkpoint, too.
    """
    first = sum(not any(step.again for step in path.steps) for path in seen.traced)
    return 0 < first < len(seen.traced) and first < min(
        len(seen.paths), len(seen.instructions or ())
    )


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
