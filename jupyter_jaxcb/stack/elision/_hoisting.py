"""Has JAX, or XLA, moved a call out of its loop; and how often it is written to be called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ._evidence import Evidence
from ._hlo import HostCallInstruction
from ._paths import Path, Step


def left_its_loop(seen: Evidence) -> bool:
    """Whether it is called outside of a loop that it is written in."""
    assert seen.instructions is not None
    if _left_by_jax(seen) or _left_with_jit(seen):
        return True
    if not seen.may_be_left_out:
        return False  # XLA leaves effects where they are
    compiled = [one.times for one in seen.instructions]
    as_traced = total([_without_elements(p) for p in seen.kept])
    if as_traced is not None and None not in compiled:
        return (total(compiled) or 0) < as_traced  # XLA may unroll a loop, but not lose its calls
    around = sorted(_loops_around(one, seen) for one in seen.instructions)
    deepest = sorted(depth for p in seen.kept for depth in p.depths)
    ahead = _before_loops(seen)
    if ahead:
        return _are_elsewhere(around, [*deepest, *ahead])
    if len(around) != len(deepest):
        return bool(deepest) and around[0] < deepest[0]
    return any(now < before for now, before in zip(around, deepest, strict=True))


def _loops_around(one: HostCallInstruction, seen: Evidence) -> int:
    """How many loops it was lowered in a host call is still in, or XLA made once.

    Without scans of length 1, of which XLA keeps some as loops.
    """
    loops = sum(step.kind == "loop" for step in one.around)
    single = min(sum(s.kind == "scan" and s.length == 1 for s in p.steps) for p in seen.kept)
    once = sum(step == ("loop", 1) for step in one.around)
    return loops + one.gone - min(once + one.gone, single)


def _are_elsewhere(around: Sequence[int], places: Sequence[int]) -> bool:
    """Whether host calls are in as many loops as `around` says, and not all at one of `places`."""
    left = Counter(places)
    left.subtract(around)
    return any(count < 0 for count in left.values())


def _before_loops(seen: Evidence) -> list[int]:
    """How deep calls in predicates are that JAX evaluates before the loop, and then in its body."""
    inside = [p for p in seen.kept if any(step.ahead for step in p.steps)]
    return [depth - 1 for p in inside for depth in p.depths]


def left_its_loop_deduplicated(seen: Evidence) -> bool:
    """Whether what is left of several paths is called less often than any of these would be."""
    assert seen.instructions is not None
    compiled = total([one.times for one in seen.instructions])
    if any(len(p.depths) > 1 for p in seen.kept):
        return False  # what is left may be a step that JAX wrote behind the loop
    each = [_without_elements(p) for p in seen.kept]
    return compiled is not None and all(calls is not None and compiled < calls for calls in each)


def intended(seen: Evidence) -> Sequence[Path]:
    """The paths that stand for calls in the source: derivatives run some again in a remat."""
    again = any(step.again for p in seen.traced for step in p.steps)
    return seen.kept or seen.fruitful if again else seen.fruitful


def written(seen: Evidence) -> int | None:
    """Host calls of a run as the source has it, where JAX moved the bind out of its loops too."""
    with_jit = _left_with_jit(seen)
    made_in = (seen.loops if with_jit else seen.around) or ()
    paths = [(p, p.steps if with_jit else p.inside_jit()) for p in intended(seen)]
    lengths = [length for kind, length in made_in if _is_loop((kind, length))]
    if seen.shards is None:
        return None
    barren = [p.steps if with_jit else p.inside_jit() for p in _barren(seen)]
    if any(_loops(steps) >= len(lengths) for steps in (*(steps for _, steps in paths), *barren)):
        return total([p.calls for p, _ in paths], seen.shards)
    return total([_as_written(p, steps, lengths) for p, steps in paths], seen.shards)


def _left_by_jax(seen: Evidence) -> bool:
    """Whether no path is in as many loops as the bind was made in: a derivative moved it.

    One path may be: JAX traces a function once, and puts it into loops and outside of them. So may
    one that no run goes.
    """
    around = sum(map(_is_loop, seen.around))
    paths = (*seen.kept, *_barren(seen))
    return bool(seen.kept) and all(_loops(p.inside_jit()) < around for p in paths)


def _barren(seen: Evidence) -> list[Path]:
    """The paths to it that no run goes; it may have been made on one of them."""
    return [path for path in seen.traced if path.is_barren(seen.platform)]


def _left_with_jit(seen: Evidence) -> bool:
    """The same, where JAX moved the jit around the bind."""
    if not seen.loops:
        return False
    return max(_loops(p.steps) for p in seen.traced) < sum(map(_is_loop, seen.loops))


def _as_written(path: Path, steps: Sequence[Step], lengths: Sequence[int | None]) -> int | None:
    """Host calls by one path, which leads through `steps` and was written in loops of `lengths`."""
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


def _without_elements(path: Path) -> int | None:
    return path._replace(levels=()).calls


def _is_loop(around: tuple[str, int | None]) -> bool:
    kind, length = around
    return kind == "while" or (kind == "scan" and length != 1)


def _loops(steps: Sequence[Step]) -> int:
    return sum(s.kind == "while" or (s.kind == "scan" and s.length != 1) for s in steps)


def total(counts: Sequence[int | None], each: int = 1) -> int | None:
    """The sum of `counts`, times `each`; None if that is not known."""
    found = 0
    for count in counts if each else ():
        if count is None:
            return None
        found += count * each
    return found
