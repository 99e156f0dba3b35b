"""What a compiled program made of a bind: the rules that decide a fate, and its words."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

from ..recording import Fate, Outcome, Program
from ._callback import Bind
from ._hlo import HostCallInstruction
from ._paths import Path, Step
from ._vanishing import Vanished

_SAYS_NOTHING = {"closed_call", "eval_jaxpr", "core_call", "shard_map", ""}
# Flavors whose calls may be left out: what keeps them.
_KEPT = {"pure": "register it as io", "buffer": "give it has_side_effect=True"}


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
        shards: on how many devices a run makes each of the calls.
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


def outcome(seen: Seen, program: Program) -> Outcome:
    """The outcome of one bind in one program."""
    path = seen.traced[0]
    made_in = seen.loops if _all_left(seen) else None
    written = _sum([_as_written(p, made_in) for p in _intended(seen)], seen.shards)
    told = functools.partial(
        Outcome,
        site=seen.bind.site,
        program=program,
        index=seen.indices[0] if seen.indices else -1,
        ways=len(seen.traced),
        written=written,
        around=tuple(map(_step_words, path.steps)),
        stack=_stack(seen.instructions[0].op_name) if seen.instructions else (),
    )
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
    lanes = seen.kept[0].lanes if seen.kept else path.lanes
    calls = _sum([one.calls for one in seen.instructions], lanes * seen.shards)
    found = told(
        fate=Fate.LIVE, compiled=calls, notes=_notes(seen), instructions=len(seen.instructions)
    )
    return _partly_elided(seen, found)


def vanished_outcome(vanished: Vanished, program: Program) -> Outcome:
    """The outcome of a bind that JAX dropped while it traced the program."""
    reason = "nothing needs its result, so JAX dropped the call while it traced the function"
    if vanished.shape_only:
        reason = "only the shape of its result is needed"
    elif vanished.bind.site.flavor not in _KEPT:
        reason = "JAX dropped it while it traced the function: dead code"
    return Outcome(
        vanished.bind.site,
        program,
        Fate.UNUSED,
        ways=0,
        compiled=0,
        reason=reason,
        remedy=_use_it(vanished.bind.site.flavor),
    )


def _keeping(flavor: str) -> str:
    return _KEPT.get(flavor, _KEPT["pure"])


def _use_it(flavor: str) -> str:
    return f"return or use the result; {_keeping(flavor)} if it must run regardless"


def _partly_elided(seen: Seen, found: Outcome) -> Outcome:
    """Merged or hoisted, where fewer calls are compiled than are written; else as it is."""
    assert seen.instructions is not None
    ways, made = len(seen.kept), len(seen.instructions)
    merged = dataclasses.replace(
        found,
        fate=Fate.MERGED,
        remedy=f"nothing, if it is pure; {_keeping(found.site.flavor)} if each of them must run",
    )
    if made < ways:
        return dataclasses.replace(
            merged,
            reason=f"{ways} ways lead here, and XLA kept {_calls(made)} of them: equal ones are "
            "made once, and ones whose result cannot matter not at all",
        )
    intended = len(_intended(seen))
    if made < intended:
        return dataclasses.replace(
            merged,
            reason=f"{intended} ways lead here, and JAX kept {_calls(made)} of them: the results "
            "of the others are never used",
        )
    if _left_its_loop(seen):
        times = "" if found.written is None else f" instead of {found.written:,} times"
        return dataclasses.replace(
            found,
            fate=Fate.HOISTED,
            reason=f"its arguments do not change in the loop, so it is called outside of it{times}",
            remedy="give it an argument that changes, the loop index say, if every step must call"
            + (f"; or {_keeping(found.site.flavor)}" if found.site.flavor in _KEPT else ""),
        )
    return found


def _left_its_loop(seen: Seen) -> bool:
    assert seen.instructions is not None
    traced = _loops_around(seen.bind)
    if any(_loops(p.inside_jit()) < traced for p in seen.kept) or _all_left(seen):
        return True  # JAX moved it, in a derivative
    if seen.bind.site.flavor != "pure" and len(seen.indices or ()) > len(seen.kept):
        return False  # in a predicate: lowered before the loop, and again inside
    deepest = min((p.loops for p in seen.kept), default=0)
    compiled = [one.calls for one in seen.instructions]
    as_traced = _sum([_without_lanes(p) for p in seen.kept])
    if as_traced is not None and None not in compiled:
        return (_sum(compiled) or 0) < as_traced  # XLA may unroll a loop, but not lose its calls
    around = min(sum(step.kind == "loop" for step in one.around) for one in seen.instructions)
    return around < deepest


def _intended(seen: Seen) -> Sequence[Path]:
    """The ways that stand for calls in the source: derivatives run some again in a remat."""
    again = any(step.kind == "remat" for p in seen.traced for step in p.steps)
    return seen.kept or seen.traced if again else seen.traced


def _all_left(seen: Seen) -> bool:
    """Whether no way is in as many loops as the bind was made in: JAX moved the jit around it."""
    if not seen.loops:
        return False
    return max(_loops(p.steps) for p in seen.traced) < sum(map(_is_loop, seen.loops))


def _as_written(path: Path, made_in: tuple[tuple[str, int | None], ...] | None) -> int | None:
    """Host calls of a run as the source has it, where JAX moved the bind out of its loops too.

    Args:
        path: a way to the bind.
        made_in: the loops that it was made in, if it has left them together with a jit.
    """
    calls = path.calls
    steps = path.inside_jit() if made_in is None else path.steps
    lengths = [n for kind, n in made_in or path.bind.around if kind in ("scan", "while")]
    if len(lengths) <= _loop_steps(steps) or calls is None:
        return calls
    if None in lengths:
        return None
    for step in steps:
        if step.kind == "scan" and step.length:
            calls //= step.length
    for length in lengths:
        calls *= length or 0
    return calls


def _without_lanes(path: Path) -> int | None:
    return path._replace(levels=()).calls


def _loops_around(bind: Bind) -> int:
    return sum(map(_is_loop, bind.around))


def _is_loop(around: tuple[str, int | None]) -> bool:
    kind, length = around
    return kind == "while" or (kind == "scan" and length != 1)


def _loops(steps: Sequence[Step]) -> int:
    return sum(s.kind == "while" or (s.kind == "scan" and s.length != 1) for s in steps)


def _loop_steps(steps: Sequence[Step]) -> int:
    return sum(s.kind in ("while", "scan") for s in steps)


def _sum(counts: Sequence[int | None], each: int = 1) -> int | None:
    total = 0
    for count in counts:
        if count is None:
            return None
        total += count * each
    return total


def _why_unused(seen: Seen) -> tuple[str, str]:
    if all(p.lanes == 0 for p in seen.traced):
        return (
            "vmap maps it over an axis of size 0: there is no lane to call it for",
            "look at the shape of the mapped argument",
        )
    if any(step.length == 0 for p in seen.traced for step in p.steps):
        return "it is in a loop of length 0", "look at the length of the loop"
    if any(step.platform for p in seen.traced for step in p.steps):
        return "it is in a branch for another platform", "nothing, unless it is meant to run here"
    if seen.bind.site.flavor in _KEPT:
        return "its result is never used, so JAX dropped the call before compiling", (
            _use_it(seen.bind.site.flavor)
        )
    return (
        "the compiled program never reaches it: dead code",
        "look at the branch around this line",
    )


def _why_folded(seen: Seen) -> tuple[str, str]:
    inside = any(step.kind in ("cond", "while", "scan") for p in seen.kept for step in p.steps)
    if seen.bind.site.flavor in _KEPT:
        return "XLA proved that its result cannot matter, and removed the call", (
            "look at what becomes of the result (a factor 0, an empty slice, a branch that is "
            f"never taken); {_keeping(seen.bind.site.flavor)} if it must run regardless"
        )
    where = "the branch or loop around it" if inside else "it"
    return f"XLA proved that a run never reaches {where}", "look at the condition around this line"


def _notes(seen: Seen) -> tuple[str, ...]:
    notes = [seen.note] if seen.note else []
    levels = {level for p in seen.kept or seen.traced for level in p.levels}
    branches = sum(kind == "cond" for kind, _ in seen.bind.around)
    for path in seen.kept or seen.traced:
        steps = path.inside_jit()
        if levels and branches > sum(step.kind == "cond" for step in steps):
            notes.append(
                "the predicate is mapped by vmap, so every branch runs for every lane; the answers "
                "of lanes that took another branch are thrown away"
            )
        if any(step.masks for step in path.steps) and levels:
            notes.append("lanes that have finished are called again until the last one has")
        vmaps = [size for kind, size in seen.bind.around if kind == "vmap"]
        if vmaps and not path.levels:
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
