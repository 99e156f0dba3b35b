"""Determine whether JAX or XLA hoisted a call, and how many calls the source asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import jax

from ..call import Bind
from ._evidence import Evidence
from ._hlo import HostCallInstruction
from ._paths import Path, Step

_LOOPS = ("scan", "while")


def is_hoisted(seen: Evidence) -> bool:
    """Return whether a call runs outside of a loop that is around it in the source."""
    assert seen.instructions is not None
    if not _may_lack_paths(seen) and (_is_hoisted_by_jax(seen) or _is_hoisted_with_jit(seen)):
        return True
    if not seen.may_be_elided:
        return False  # XLA does not move calls with side effects
    compiled = [one.times for one in seen.instructions]
    as_traced = total([_without_elements(p) for p in seen.kept])
    if as_traced is not None and None not in compiled:
        return (total(compiled) or 0) < as_traced  # XLA may unroll a loop, but keeps its calls
    around, deepest = depths(seen)
    ahead = before_loops(seen)
    if ahead:
        return bool(_left_over(around, [*deepest, *ahead]))
    if len(around) != len(deepest):
        return bool(deepest) and around[0] < deepest[0]
    return any(now < before for now, before in zip(around, deepest, strict=True))


def _loops_around(one: HostCallInstruction, seen: Evidence) -> int:
    """Count the loops that a host call is still in, or was until XLA removed them.

    Scans of one iteration do not count, although XLA keeps some of them as loops.
    """
    loops = sum(step.kind == "loop" for step in one.around)
    steps = _steps_of_loops(one, seen)
    if steps is not None:  # XLA moves a call out of the innermost loop first
        return sum(step.copies[0] > 0 for step in steps[:loops])
    single = min(sum(step.is_one_turn for step in path.steps) for path in seen.kept)
    once = sum(step.kind == "loop" and step.times == 1 for step in one.around)
    return loops + one.gone - min(once + one.gone, single)


def _steps_of_loops(one: HostCallInstruction, seen: Evidence) -> list[Step] | None:
    """Return the loops of the only path to a host call, if all are in the program; None if unsure.

    XLA does not always know the length of a loop, so a loop of one step that it kept may look like
    any other.
    """
    if len(seen.kept) != 1 or seen.kept[0].predicates or one.gone:
        return None
    steps = [step for step in seen.kept[0].steps if step.kind in ("scan", "while")]
    return steps if len(steps) == one.named_loops else None


def depths(seen: Evidence) -> tuple[list[int], list[int]]:
    """Return in how many loops each call left in the program is, and each copy of a path."""
    around = sorted(_loops_around(one, seen) for one in seen.instructions or ())
    return around, sorted(depth for p in seen.kept for depth in p.depths)


def _left_over(depths: Sequence[int], others: Sequence[int]) -> int:
    """Count the loop depths that are not among `others`."""
    return (Counter(depths) - Counter(others)).total()


def gone_before_loops(seen: Evidence) -> int:
    """Count the calls missing where JAX evaluates a predicate before its loop.

    The copies in the loop do not count: without them, the loop is never entered.
    """
    around, _ = depths(seen)
    first = [depth - len(p.predicates) for p in seen.kept if p.predicates for depth in p.depths]
    return _left_over(first, around)


def before_loops(seen: Evidence) -> list[int]:
    """Return the loop depths of calls in predicates that JAX evaluates once before the loop."""
    return [depth for p in seen.kept for depth in p.depths_before_loops]


def count_before_loops(seen: Evidence) -> int:
    """Count the calls that JAX adds before the loops of `Evidence.predicates`."""
    inside = [p for p in seen.kept if seen.predicates.issuperset(p.predicates)]
    return sum(len(p.depths_before_loops) for p in inside)


def is_hoisted_and_deduplicated(seen: Evidence) -> bool:
    """Return whether the remaining calls of several paths are outside of the loops around them."""
    assert seen.instructions is not None
    if any(len(p.depths) > 1 for p in seen.kept):
        return False  # the remaining call may be a step that JAX unrolled after the loop
    compiled = total([one.times for one in seen.instructions])
    each = [calls for p in seen.kept if (calls := _without_elements(p)) is not None]
    if compiled is not None and len(each) == len(seen.kept):
        return all(compiled < calls for calls in each)
    around, deepest = depths(seen)
    ahead = before_loops(seen)
    if ahead and not Counter(around) & Counter(deepest):
        return True
    return bool(_left_over(around, [*deepest, *ahead]))


def intended(seen: Evidence) -> Sequence[Path]:
    """Return the paths that are calls in the source, without those a remat runs again."""
    again = any(step.again for p in seen.traced for step in p.steps)
    return seen.kept or seen.reachable if again else seen.reachable


def written(seen: Evidence) -> int | None:
    """Return the host calls of a run according to the source, also if JAX hoisted the bind."""
    with_jit = _is_hoisted_with_jit(seen)
    made_in = (seen.loops if with_jit else seen.around) or ()
    paths = [(p, p.steps if with_jit else p.inside_jit()) for p in intended(seen)]
    lengths = [length for kind, length in made_in if _is_loop((kind, length))]
    if seen.shards is None:
        return None
    if with_jit and len(paths) > 1:
        return None  # some paths may be outside of the loop in the source, too
    others = [p.steps if with_jit else p.inside_jit() for p in _unreachable(seen)]
    if any(_loops(steps) >= len(lengths) for steps in (*(steps for _, steps in paths), *others)):
        return total([p.calls for p, _ in paths], seen.shards)
    return total([_as_written(p, steps, lengths) for p, steps in paths], seen.shards)


def _is_hoisted_by_jax(seen: Evidence) -> bool:
    """Return whether a derivative moved the bind: no path is in as many loops as the source has.

    All paths count, also unreachable ones: JAX traces a function once and may use it both inside
    and outside of loops.
    """
    around = sum(map(_is_loop, seen.around))
    paths = (*seen.kept, *_unreachable(seen))
    return bool(seen.kept) and all(_loops(p.inside_jit()) < around for p in paths)


def may_be_hoisted(seen: Evidence) -> bool:
    """Return whether JAX may have moved a bind of an earlier trace out of a loop, unseen.

    That trace may have been in more loops than this program has. But its innermost loop is around
    the bind in each program that uses the trace, and only derivatives move it out.
    """
    around = _around_trace(seen)
    loops, left = _all_loops(around), list(map(_all_loops, _words_of_paths(seen)))
    if seen.loops is not None or not left or max(left) >= loops:
        return False
    return seen.differentiated or (max(left) == 0 and around[0][0] in _LOOPS)


def left_loop(bind: Bind) -> bool:
    """Return whether a bind that is executed eagerly was traced in a loop of several steps."""
    return any(map(_is_loop, bind.around)) and not getattr(jax.config, "jax_disable_jit", False)


def may_be_partly_hoisted(seen: Evidence) -> bool:
    """Return whether a derivative may have moved a bind out of a loop on some paths only.

    A function under `jax.checkpoint` is traced once, and may be used in a loop and outside.
    """
    if not seen.differentiated:
        return False
    paths = _words_of_paths(seen)
    turns = [sum(map(_is_loop, path)) for path in paths]
    deepest = max(map(_all_loops, paths), default=0)
    return len(set(turns)) > 1 and min(turns) < _all_loops(_around_trace(seen)) <= deepest


def _around_trace(seen: Evidence) -> list[tuple[str, int | None]]:
    return [one for one in seen.bind.around if one[0] != "vmap"]


def _words_of_paths(seen: Evidence) -> list[list[tuple[str, int | None]]]:
    paths = (*seen.kept, *_unreachable(seen))
    return [[(step.kind, step.length) for step in path.inside_jit()] for path in paths]


def _all_loops(around: Sequence[tuple[str, int | None]]) -> int:
    """Count loops, also those of one step: if another program was traced, it may have had more."""
    return sum(kind in _LOOPS for kind, _ in around)


def _may_lack_paths(seen: Evidence) -> bool:
    """Return whether JAX may have removed unused paths, in more loops than the others, unseen.

    It does while it lowers its hijax operations to `eval_jaxpr`.
    """
    return any(step.kind == "eval_jaxpr" for path in seen.traced for step in path.steps)


def _unreachable(seen: Evidence) -> list[Path]:
    """Return the paths that no run takes; the bind may have been traced on one of them."""
    return [path for path in seen.traced if path.is_unreachable(seen.platform)]


def _is_hoisted_with_jit(seen: Evidence) -> bool:
    """Return whether JAX hoisted the bind together with a jit around it."""
    if not seen.loops:
        return False
    return max(_loops(p.steps) for p in seen.traced) < sum(map(_is_loop, seen.loops))


def _as_written(path: Path, steps: Sequence[Step], lengths: Sequence[int | None]) -> int | None:
    """Return the host calls of a path, with the loops in `steps` replaced by those in the source.

    Args:
        path: the path.
        steps: its steps inside the jit that was hoisted, or inside its innermost jit.
        lengths: the lengths of the loops around it in the source.
    """
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
    """Return the sum of `counts` times `each`; None if a count is unknown."""
    found = 0
    for count in counts if each else ():
        if count is None:
            return None
        found += count * each
    return found
