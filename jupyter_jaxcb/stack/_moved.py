"""Has JAX, or XLA, moved a call out of its loop; and how often it is written to be called."""

from __future__ import annotations

from collections.abc import Sequence

from ._paths import Path, Step
from ._seen import Seen


def left_its_loop(seen: Seen) -> bool:
    """Whether it is called outside of a loop that it is written in."""
    assert seen.instructions is not None
    if _left_by_jax(seen) or _left_with_jit(seen):
        return True
    if not seen.bind.site.flavor.endswith("pure") and len(seen.indices or ()) > len(seen.kept):
        return False  # in a predicate: lowered before the loop, and again inside
    deepest = min((p.loops for p in seen.kept), default=0)
    compiled = [one.calls for one in seen.instructions]
    as_traced = total([_without_lanes(p) for p in seen.kept])
    if as_traced is not None and None not in compiled:
        return (total(compiled) or 0) < as_traced  # XLA may unroll a loop, but not lose its calls
    around = min(sum(step.kind == "loop" for step in one.around) for one in seen.instructions)
    return around < deepest


def left_its_loop_merged(seen: Seen) -> bool:
    """Whether what is left of several ways is called less often than any of these would be."""
    assert seen.instructions is not None
    compiled = total([one.calls for one in seen.instructions])
    each = [_without_lanes(p) for p in seen.kept]
    return compiled is not None and all(calls is not None and compiled < calls for calls in each)


def intended(seen: Seen) -> Sequence[Path]:
    """The ways that stand for calls in the source: derivatives run some again in a remat."""
    again = any(step.kind == "remat" for p in seen.traced for step in p.steps)
    return seen.kept or seen.traced if again else seen.traced


def written(seen: Seen) -> int | None:
    """Host calls of a run as the source has it, where JAX moved the bind out of its loops too."""
    with_jit = _left_with_jit(seen)
    made_in = (seen.loops if with_jit else seen.around) or ()
    ways = [(p, p.steps if with_jit else p.inside_jit()) for p in intended(seen)]
    lengths = [n for kind, n in made_in if kind in ("scan", "while")]
    if any(_loop_steps(steps) >= len(lengths) for _, steps in ways):
        return total([p.calls for p, _ in ways], seen.shards)
    return total([_as_written(p, steps, lengths) for p, steps in ways], seen.shards)


def _left_by_jax(seen: Seen) -> bool:
    """Whether no way is in as many loops as the bind was made in: a derivative moved it.

    One way may be: JAX traces a function once, and puts it into loops and outside of them.
    """
    around = sum(map(_is_loop, seen.around))
    return bool(seen.kept) and all(_loops(p.inside_jit()) < around for p in seen.kept)


def _left_with_jit(seen: Seen) -> bool:
    """The same, where JAX moved the jit around the bind."""
    if not seen.loops:
        return False
    return max(_loops(p.steps) for p in seen.traced) < sum(map(_is_loop, seen.loops))


def _as_written(path: Path, steps: Sequence[Step], lengths: Sequence[int | None]) -> int | None:
    """Host calls by one way, which leads through `steps` and was written in loops of `lengths`."""
    calls = path.calls
    if calls is None:
        return None
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


def _is_loop(around: tuple[str, int | None]) -> bool:
    kind, length = around
    return kind == "while" or (kind == "scan" and length != 1)


def _loops(steps: Sequence[Step]) -> int:
    return sum(s.kind == "while" or (s.kind == "scan" and s.length != 1) for s in steps)


def _loop_steps(steps: Sequence[Step]) -> int:
    return sum(s.kind in ("while", "scan") for s in steps)


def total(counts: Sequence[int | None], each: int = 1) -> int | None:
    """The sum of `counts`, times `each`; None if that is not known."""
    found = 0
    for count in counts if each else ():
        if count is None:
            return None
        found += count * each
    return found
