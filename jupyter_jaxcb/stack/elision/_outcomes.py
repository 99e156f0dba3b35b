"""What a compiled program made of a bind: the rules that decide a fate, and its words."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from ...recording import Fate, Outcome, Program
from ._dropped import Dropped
from ._evidence import Evidence
from ._hoisting import intended, left_its_loop, left_its_loop_merged, total, written
from ._paths import Path, Step

_SAYS_NOTHING = {"closed_call", "eval_jaxpr", "core_call", "shard_map", ""}
# Flavors whose calls may be left out: what keeps them.
_KEPT = {
    "pure": "register it as io",
    "buffer": "give it has_side_effect=True",
    "jax pure": "make it with io_callback",
    "jax buffer": "give it has_side_effect=True",
}

_NOT_EVALUATED = (
    "it is in the condition of a loop of which XLA knows how often it runs; XLA never evaluates "
    "the condition then"
)
_EVALUATE = "make the call in the body of the loop, or have the condition depend on its result"

_MOVED_OUT = "the derivative moved it out of a loop of length 0, so it is called all the same"

SHARED = {"jax buffer"}  # flavors of which JAX lowers equal calls of one program once


def outcome(seen: Evidence, program: Program) -> Outcome:
    """The outcome of one bind in one program."""
    path = seen.traced[0]
    told = functools.partial(
        Outcome,
        site=seen.bind.site,
        program=program,
        index=seen.indices[0].number if seen.indices else -1,
        ways=len(seen.traced),
        written=written(seen),
        around=tuple(map(_step_words, path.steps)),
        stack=_stack(seen.instructions[0].op_name) if seen.instructions else (),
    )
    if _is_shared(seen):
        reason = "JAX lowered it together with an equal call, on whose line its calls are counted"
        remedy = "nothing; with another function each of them has calls of its own"
        return told(fate=Fate.UNKNOWN, reason=reason, remedy=remedy)
    if seen.indices is None or all(p.lanes == 0 for p in seen.traced):
        reason, remedy = _why_unused(seen)
        return told(fate=Fate.UNUSED, compiled=0, reason=reason, remedy=remedy)
    if seen.instructions is None:
        reason = f"the optimised program cannot be read: {seen.unreadable}"
        remedy = "count its calls; report this with the version of JAX"
        return told(fate=Fate.UNKNOWN, reason=reason, remedy=remedy)
    if not seen.instructions:
        reason, remedy = _why_folded(seen)
        return told(fate=Fate.FOLDED, compiled=0, reason=reason, remedy=remedy)
    evaluated = [one for one in seen.instructions if one.times != 0]
    if not evaluated:
        return told(fate=Fate.FOLDED, compiled=0, reason=_NOT_EVALUATED, remedy=_EVALUATE)
    calls = total([one.calls for one in seen.instructions])
    found = told(
        fate=Fate.LIVE, compiled=calls, notes=_notes(seen), instructions=len(seen.instructions)
    )
    if len(evaluated) < len(seen.instructions):
        return dataclasses.replace(
            found,
            fate=Fate.MERGED,
            reason=f"on one of the ways that lead here, {_NOT_EVALUATED}",
            remedy=_EVALUATE,
        )
    return _partly_elided(seen, found)


def _is_shared(seen: Evidence) -> bool:
    """Whether it was lowered, but not under its own name."""
    if seen.indices is not None or seen.bind.site.flavor not in SHARED:
        return False
    return bool(seen.kept)


def dropped_outcome(vanished: Dropped, program: Program) -> Outcome:
    """The outcome of a bind that JAX dropped while it traced the program."""
    reason = "nothing needs its result, so JAX dropped the call while it traced the function"
    if vanished.shape_only:
        reason = "only the shape of its result is needed"
    elif vanished.bind.site.flavor not in _KEPT:
        reason = "JAX dropped it while it traced the function: dead code"
    remedy = _use_it(vanished.bind.site.flavor)
    if vanished.bind.site.flavor == "jax io" and not vanished.shape_only:
        reason = "JAX dropped it while it traced the function, as it does with io in derivatives"
        remedy = "bind it with jupyter_jaxcb.io_callback, which stays in derivatives of loops"
    told = Outcome(vanished.bind.site, program, Fate.UNUSED, ways=0, compiled=0)
    return dataclasses.replace(told, reason=reason, remedy=remedy)


def _keeping(flavor: str) -> str:
    return _KEPT.get(flavor, _KEPT["pure"])


def _use_it(flavor: str) -> str:
    return f"return or use the result; {_keeping(flavor)} if it must run regardless"


def _partly_elided(seen: Evidence, found: Outcome) -> Outcome:
    """Merged or hoisted, where fewer calls are compiled than are written; else as it is."""
    assert seen.instructions is not None
    ways, made = _places(seen.kept), len(seen.instructions)
    merged = dataclasses.replace(
        found,
        fate=Fate.MERGED,
        remedy=f"nothing, if it is pure; {_keeping(found.site.flavor)} if each of them must run",
    )
    if made < ways and seen.may_be_left_out:
        moved = " outside of the loop" if left_its_loop_merged(seen) else ""
        return dataclasses.replace(
            merged,
            reason=f"{_ways(seen, ways)}, and XLA kept {_calls(made)} of them{moved}: equal ones "
            "are made once, and ones whose result cannot matter, or that no run reaches, not at "
            "all",
        )
    wanted = _places(intended(seen))
    if ways < wanted and made < wanted:
        return dataclasses.replace(
            merged,
            reason=f"{_ways(seen, wanted)}, and JAX kept {_calls(made)} of them: the results "
            "of the others are never used",
        )
    if left_its_loop(seen):
        if _is_more(found.compiled, found.written):
            return dataclasses.replace(found, notes=(*found.notes, _MOVED_OUT))
        times = "" if found.written is None else f" instead of {found.written:,} times"
        return dataclasses.replace(
            found,
            fate=Fate.HOISTED,
            reason=f"its arguments do not change in the loop, so it is called outside of it{times}",
            remedy="give it an argument that changes, the loop index say, if every step must call"
            + (f"; or {_keeping(found.site.flavor)}" if found.site.flavor in _KEPT else ""),
        )
    return found


def _ways(seen: Evidence, count: int) -> str:
    unrolled = any(len(path.depths) > 1 for path in seen.traced)
    return f"{count} ways lead here" + (" (JAX unrolled the loop)" if unrolled else "")


def _is_more(compiled: int | None, written: int | None) -> bool:
    return compiled is not None and written is not None and compiled > written


def _places(paths: Sequence[Path]) -> int:
    """Where `paths` lead: those into an unrolled loop lead to several places."""
    return sum(len(path.depths) for path in paths)


def _why_unused(seen: Evidence) -> tuple[str, str]:
    if not seen.fruitful:
        return _why_barren(seen)
    if seen.bind.site.flavor in _KEPT:
        return "its result is never used, so JAX dropped the call before compiling", (
            _use_it(seen.bind.site.flavor)
        )
    return (
        "the compiled program never reaches it: dead code",
        "look at the branch around this line",
    )


_NO_LANES = (
    "vmap maps it over an axis of size 0: there is no lane to call it for",
    "look at the shape of the mapped argument",
)


def _why_barren(seen: Evidence) -> tuple[str, str]:
    """Why no run calls it, where that is so of each way to it."""
    if all(any(level.size == 0 for level in p.levels) for p in seen.traced):
        return _NO_LANES
    if any(step.length == 0 for p in seen.traced for step in p.steps):
        return "it is in a loop of length 0", "look at the length of the loop"
    if any(step.reached is False for p in seen.traced for step in p.steps):
        return _never_reached("the branch or loop around it")
    return "it is in a branch for another platform", "nothing, unless it is meant to run here"


def _never_reached(what: str) -> tuple[str, str]:
    return f"XLA proved that a run never reaches {what}", "look at the condition around this line"


def _why_folded(seen: Evidence) -> tuple[str, str]:
    if not seen.kept:
        return _why_barren(seen)
    inside = any(step.kind in ("cond", "while", "scan") for p in seen.kept for step in p.steps)
    if seen.bind.site.flavor in _KEPT:
        return "XLA proved that its result cannot matter, and removed the call", (
            "look at what becomes of the result (a factor 0, an empty slice, a branch that is "
            f"never taken); {_keeping(seen.bind.site.flavor)} if it must run regardless"
        )
    return _never_reached("the branch or loop around it" if inside else "it")


def _notes(seen: Evidence) -> tuple[str, ...]:
    notes = [seen.note] if seen.note else []
    any_mapped = any(p.levels or p.mapped for p in seen.ways)
    branches = sum(kind == "cond" for kind, _ in seen.around)
    for path in seen.ways:
        steps = path.inside_jit()
        if any_mapped and branches > sum(step.kind == "cond" for step in steps):
            notes.append(
                "the predicate is mapped by vmap, so every branch runs for every lane; the answers "
                "of lanes that took another branch are thrown away"
            )
        if any(step.masks for step in path.steps) and any_mapped:
            notes.append("lanes that have finished are called again until the last one has")
        vmaps = [size for kind, size in seen.around if kind == "vmap"]
        if vmaps and not any_mapped:
            lanes = " × ".join(map(str, reversed(vmaps)))
            notes.append(f"no argument is mapped by vmap: one call is shared by {lanes} lanes")
    return tuple(dict.fromkeys(notes))


def _step_words(step: Step) -> str:
    return step.kind if step.length is None else f"{step.kind} of {step.length}"


def _stack(op_name: str) -> tuple[str, ...]:
    """``jit(f)/vmap()/while/body/closed_call/primitive`` without what says nothing."""
    _program, *parts = op_name.split("/")
    words = [part.removesuffix("()") for part in parts[:-1] if part not in _SAYS_NOTHING]
    text = "/".join(words).replace("/body", ":body").replace("while/cond", "while:cond")
    text = text.replace("cond/branch_", "cond:branch_")
    return tuple(word.replace(":", "/") for word in text.split("/") if word)


def _calls(count: int) -> str:
    return f"{count:,} call{'' if count == 1 else 's'}"
