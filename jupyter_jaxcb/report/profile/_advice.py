"""Say what a profile means: sentences, each with its figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ...recording import OTHER, PYTHON_OF_JAX, Compilation, Part, PartKind
from ..summary import Retraces, retraces, time_words
from ._callback_advice import callback_advice
from ._figures import MUCH, SOME, Figures, is_mostly_cost, share_words, took
from ._queue import alone_in_queue, queue_advice

_LARGE = 0.25  # of the wall time: an operation that is expected to take some
_LARGE_COPY_NS = 50_000  # a copy that takes longer is that of a large array
_SHORT_PROGRAM_NS = 1_000_000  # dispatching a program costs more than a longer one would notice
# Parts of dispatch that start no program; the second one waits for a result.
_NO_RUN, _WAITS = "shard_args", "np.asarray(jax.Array)"
_MANY = 20  # programs started: fewer are not worth joining
_ONCE = (
    " Later calls of the same jitted functions in this process, with arguments of the same shapes "
    "and types, save it."
)
_LISTED = 3  # functions that were compiled several times


def advice(figures: Figures) -> list[str]:
    """Return sentences about what took much of the time, the largest first in each kind."""
    return [
        *callback_advice(figures),
        *queue_advice(figures),
        *_compilations(figures),
        *_operations(figures),
        *_copies(figures),
        *_dispatch(figures),
        *alone_in_queue(figures),
        *_outside(figures),
    ]


def _compilations(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.COMPILATION)
    if figures.share(total) < MUCH:
        return
    again = retraces(figures.profile.compilations)
    # Another process compiles again, and so does a run that makes its functions anew.
    yield f"Compilation took {took(figures, total)}.{'' if again else _ONCE}"
    with_callbacks = {fact.program for fact in figures.recording.lowered}
    of_jax = [
        one
        for one in figures.profile.compilations
        if not one.code and one.program not in with_callbacks
    ]
    found = [(_compile_ns(one.compilations), _retraced(one)) for one in again]
    if len(of_jax) > 1:
        found.append((_compile_ns(of_jax), _functions_of_jax(of_jax)))
    found.sort(key=lambda one: -one[0])
    yield from (words for ns, words in found[:_LISTED] if figures.share(ns) >= SOME)


def _compile_ns(compilations: Iterable[Compilation]) -> int:
    return sum(one.lower_ns + one.compile_ns for one in compilations)


def _retraced(one: Retraces) -> str:
    took = time_words(_compile_ns(one.compilations))
    padded = ": arguments of one shape, such as padded ones, need only one"
    return f"{one.times} ({took}){one.reason}{padded if one.has_other_sizes else ''}."


def _functions_of_jax(compilations: Sequence[Compilation]) -> str:
    took = time_words(_compile_ns(compilations))
    times = Counter(one.program.name.removeprefix("jit_") for one in compilations)
    names = [f"{name} ({n} times)" if n > 1 else name for name, n in times.most_common(2)]
    return (
        f"Single functions of JAX, such as {' and '.join(names)}, are {len(compilations)} programs "
        f"({took}): put jax.jit around the function that calls them to make them one program."
    )


def _operations(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.XLA)
    parts = figures.parts(PartKind.XLA)
    if figures.share(total) < _LARGE or not parts:
        return
    largest = parts[0]
    if is_mostly_cost(figures, largest):
        return
    callbacks = sum(figures.profile.of_kind(kind) for kind in (PartKind.HOST, PartKind.CROSSING))
    of_callbacks = (
        f", callbacks {share_words(figures.share(callbacks))}" if figures.recording.lowered else ""
    )
    yield (
        f"XLA took {took(figures, total)}{of_callbacks}. Its largest operation is "
        f"{figures.named(largest)}: {time_words(largest.wall_ns)}."
    )


def _dispatch(figures: Figures) -> Iterator[str]:
    every = figures.parts(PartKind.DISPATCH)
    yield from _python_of_jax(figures, [part for part in every if part.name == PYTHON_OF_JAX])
    parts = [part for part in every if part.name not in (_WAITS, PYTHON_OF_JAX)]
    total = sum(part.wall_ns for part in parts)
    parts = [part for part in parts if part.name != _NO_RUN]
    runs = sum(part.times for part in parts)
    if figures.share(total) < MUCH or runs < _MANY or total > runs * _SHORT_PROGRAM_NS:
        return
    most = max(parts, key=lambda part: (part.name != OTHER, part.times))
    yield (
        f"Dispatch took {took(figures, total)}: JAX started {runs:,} programs, {most.name} "
        f"{most.times:,} times. With one jax.jit around them it starts one, which saves up to "
        f"{time_words(total - total // runs)}."
    )


def _python_of_jax(figures: Figures, parts: Sequence[Part]) -> Iterator[str]:
    total = sum(part.wall_ns for part in parts)
    if figures.share(total) >= MUCH:
        yield (
            f"JAX's own Python took {took(figures, total)}, {time_words(parts[0].wall_ns)} of it "
            f"in {figures.where(parts[0])}. It runs when JAX starts, and each time a function "
            "without jax.jit around it is transformed."
        )


def _copies(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.COPY)
    if figures.share(total) < MUCH:
        return
    count = sum(part.times for part in figures.parts(PartKind.COPY))
    each = total // max(count, 1)
    text = f"Copies took {took(figures, total)}: {count:,} of {time_words(each)}."
    if each >= _LARGE_COPY_NS:
        text += " If you pass an array again, pass jax.device_put(array), which copies it once."
    yield text


def _outside(figures: Figures) -> Iterator[str]:
    for kind, words, end in (
        (PartKind.PYTHON, "Python outside of JAX took", ""),
        (
            PartKind.IDLE,
            "The block's thread was idle for",
            ": it slept, or waited for a file, a CPU, the GIL or another thread",
        ),
    ):
        total = figures.profile.of_kind(kind)
        if figures.share(total) < MUCH:
            continue
        most = figures.parts(kind)[0]
        line = f", {time_words(most.wall_ns)} of it in {figures.where(most)}" if most.place else ""
        yield f"{words} {took(figures, total)}{line}{end}."
