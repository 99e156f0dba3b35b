"""Say what a profile means: sentences, each with its figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from ...recording import COMPILED_THREAD, OBSERVED, OTHER, Compilation, Part, PartKind
from ..summary import Retraces, retraces
from ..text import shorten, time_words
from ._figures import KINDS, Figures, share_words

_MUCH = 0.1  # of the wall time: worth a sentence
_LARGE = 0.25  # of the wall time: an operation that is expected to take some
_SOME = 0.05  # of the wall time, spent on one callback that could be queued
_LONG_CROSSING_NS = 1_000_000  # a crossing that takes longer copies large arrays
_SHORT_PROGRAM_NS = 1_000_000  # dispatching a program costs more than a longer one would notice
# Parts of dispatch that start no program; the second one waits for a result.
_NO_RUN, _WAITS = "shard_args", "np.asarray(jax.Array)"
_MANY = 20  # programs started: fewer are not worth joining
_LISTED = 3  # functions that were compiled several times
_LONGEST = 60  # characters of arguments


def advice(figures: Figures) -> list[str]:
    """Return sentences about what took much of the time, the largest first in each kind."""
    return [
        *_host_functions(figures),
        *_crossings(figures),
        *_queueable(figures),
        *_full_queues(figures),
        *_compilations(figures),
        *_operations(figures),
        *_copies(figures),
        *_dispatch(figures),
        *_queued(figures),
        *_outside(figures),
    ]


def _took(figures: Figures, ns: int) -> str:
    return f"{share_words(figures.share(ns))} of {time_words(figures.profile.wall_ns)}"


def _host_functions(figures: Figures) -> Iterator[str]:
    for part in figures.parts(PartKind.HOST):
        if figures.share(part.wall_ns) < _MUCH or part.lowered < 0:
            continue
        each = part.busy_ns // max(part.times, 1)
        text = f"{figures.named(part)} took {_took(figures, part.wall_ns)}: "
        text += f"{part.times:,} calls of {time_words(each)}." if part.times > 1 else "1 call."
        yield text + _batched(figures, part)


def _batched(figures: Figures, part: Part) -> str:
    """Say how many calls a vmap method without a loop would make; empty if there is none."""
    recording = figures.recording
    site = recording.lowered[part.lowered].site
    own = [n for n, fact in enumerate(recording.lowered) if fact.site == site]
    looped = any(recording.lowered[n].elements is not None for n in own)
    crossings = len(np.unique(_rows(figures, part)["crossing"]))
    if (
        not looped
        or not _is_python(figures, part)
        or site.flavor.removeprefix(OBSERVED) != "pure"
        or crossings >= part.times
    ):
        return ""
    calls = "1 call" if crossings == 1 else f"{crossings:,} calls"
    return (
        f" vmap makes them one by one: if the function can take a batch, "
        f"vmap_method='expand_dims' makes {calls}."
    )


def _crossings(figures: Figures) -> Iterator[str]:
    for part in figures.parts(PartKind.CROSSING):
        if figures.share(part.wall_ns) < _MUCH:
            continue
        each = part.busy_ns // max(part.times, 1)
        count = f"{part.times:,} of {time_words(each)}" if part.times > 1 else "1 crossing"
        text = (
            f"Crossings of {figures.named(part)} took {_took(figures, part.wall_ns)}: {count}, "
            "without the function itself."
        )
        yield text + (
            _copied(figures, part) if each > _LONG_CROSSING_NS else _cheaper(figures, part)
        )


def _copied(figures: Figures, part: Part) -> str:
    """Say what makes a single crossing long: the size of its arrays."""
    if part.lowered < 0:
        return ""
    fact = figures.recording.lowered[part.lowered]
    operands, results = (
        shorten(", ".join(map(str, avals)) or "nothing", _LONGEST)
        for avals in (fact.operands, fact.results)
    )
    return f" Each hands over {operands} and gets {results} back."


def _cheaper(figures: Figures, part: Part) -> str:
    if part.lowered < 0:
        return ""
    fact = figures.recording.lowered[part.lowered]
    if fact.site.flavor.startswith(OBSERVED):
        name = fact.site.flavor.removeprefix(OBSERVED)
        name = "debug_print" if fact.site.function == "debug.print" else name
        return f" This is JAX's own callback: that of jaxcb.{name} is ten to thirty times as fast."
    if not _is_python(figures, part):
        return ""
    if fact.site.flavor == "pure":
        return " compile='numba' avoids them, if numba can compile the function."
    return " One call with more data costs hardly more than one with little."


def _is_python(figures: Figures, part: Part) -> bool:
    """Return whether the function runs in Python, in the program's own threads."""
    recording = figures.recording
    threads = np.unique(_rows(figures, part)["thread"]).tolist()
    workers = {worker.thread for worker in recording.workers}
    return not any(n in workers or recording.threads[n] == COMPILED_THREAD for n in threads)


def _rows(figures: Figures, part: Part) -> np.ndarray:
    """Return the host calls of the site of a part."""
    recording = figures.recording
    site = recording.lowered[part.lowered].site
    own = [number for number, fact in enumerate(recording.lowered) if fact.site == site]
    return recording.calls[np.isin(recording.calls["lowered"], own)]


def _queueable(figures: Figures) -> Iterator[str]:
    """Name the callbacks that the program waits for without needing a result."""
    for part in figures.parts(PartKind.HOST):
        if part.lowered < 0:
            continue
        fact = figures.recording.lowered[part.lowered]
        flavor = fact.site.flavor.removeprefix(OBSERVED)
        is_python = _is_python(figures, part)
        if flavor not in ("debug", "io") or fact.results or not is_python:
            continue
        crossings = figures.parts(PartKind.CROSSING)
        own = sum(one.wall_ns for one in crossings if one.lowered == part.lowered)
        waited = part.wall_ns + own
        how = "queued=True" if flavor == fact.site.flavor else f"jaxcb.{flavor}(queued=True)"
        if figures.share(waited) >= _SOME:
            yield (
                f"The program waited {time_words(waited)} for {figures.named(part)}, whose result "
                f"it does not need: with {how} it does not wait."
            )


def _full_queues(figures: Figures) -> Iterator[str]:
    for part in figures.parts(PartKind.WAITING):
        if figures.share(part.wall_ns) >= _SOME:
            yield (
                f"The program waited {time_words(part.wall_ns)} for {figures.named(part)}, because "
                "its queue was full: jaxcb.set_queue_limit gives the queue more memory, and "
                "on_full='drop' drops calls."
            )


def _compilations(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.COMPILATION)
    if figures.share(total) < _MUCH:
        return
    again = time_words(figures.profile.wall_ns - total)
    yield f"Compilation took {_took(figures, total)}; everything else took {again}."
    of_jax = [one for one in figures.profile.compilations if not one.code]
    found = [(_compile_ns(one.compilations), _retraced(one)) for one in retraces(
        figures.profile.compilations
    )]  # fmt: skip
    if len(of_jax) > 1:
        found.append((_compile_ns(of_jax), _functions_of_jax(of_jax)))
    found.sort(key=lambda one: -one[0])
    yield from (words for ns, words in found[:_LISTED] if figures.share(ns) >= _SOME)


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
        f"({took}): a function with jax.jit around them is one program."
    )


def _operations(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.XLA)
    parts = figures.parts(PartKind.XLA)
    if figures.share(total) < _LARGE or not parts:
        return
    largest = parts[0]
    callbacks = sum(figures.profile.of_kind(kind) for kind in (PartKind.HOST, PartKind.CROSSING))
    of_callbacks = (
        f", callbacks {share_words(figures.share(callbacks))}" if figures.recording.lowered else ""
    )
    yield (
        f"XLA took {_took(figures, total)}{of_callbacks}. Its largest operation is "
        f"{figures.named(largest)}: {time_words(largest.wall_ns)}."
    )


def _dispatch(figures: Figures) -> Iterator[str]:
    parts = [part for part in figures.parts(PartKind.DISPATCH) if part.name != _WAITS]
    total = sum(part.wall_ns for part in parts)
    parts = [part for part in parts if part.name != _NO_RUN]
    runs = sum(part.times for part in parts)
    if figures.share(total) < _MUCH or runs < _MANY or total > runs * _SHORT_PROGRAM_NS:
        return
    most = max(parts, key=lambda part: (part.name != OTHER, part.times))
    yield (
        f"Dispatch took {_took(figures, total)}: {runs:,} programs were started, {most.name} "
        f"{most.times:,} times. One jax.jit around them starts one."
    )


def _copies(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.COPY)
    if figures.share(total) >= _MUCH:
        count = sum(part.times for part in figures.parts(PartKind.COPY))
        each = time_words(total // max(count, 1))
        yield (
            f"Copies took {_took(figures, total)}: {count:,} of {each}. "
            "An array that is used again is copied once if jax.device_put makes it a JAX array."
        )


def _queued(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.QUEUED)
    if figures.share(total) >= _MUCH:
        most = figures.parts(PartKind.QUEUED)[0]
        yield (
            f"For {_took(figures, total)}, only queued host functions ran, most of it "
            f"{figures.named(most)}: the program has ended, or waits for them."
        )


def _outside(figures: Figures) -> Iterator[str]:
    for kind in (PartKind.PYTHON, PartKind.IDLE):
        total = figures.profile.of_kind(kind)
        if figures.share(total) < _MUCH:
            continue
        most = figures.parts(kind)[0]
        words = (
            KINDS[kind]
            if kind == PartKind.PYTHON
            else "The block's thread waited, and nothing of JAX ran, for"
        )
        text = f"{words} took " if kind == PartKind.PYTHON else f"{words} "
        text += _took(figures, total)
        if most.place is not None:
            text += f", {time_words(most.wall_ns)} of it in {figures.where(most)}"
        yield f"{text}."
