"""Say what a profile means: sentences, each with its figure."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...recording import COMPILED_THREAD, OBSERVED, Compilation, Part, PartKind
from ..text import shorten, time_words
from ._figures import KINDS, Figures, share_words

_MUCH = 0.1  # of the wall time: worth a sentence
_SOME = 0.05  # of the wall time, spent on one callback that could be queued
_LONG_CROSSING_NS = 1_000_000  # a crossing that takes longer copies large arrays
_SHORT_PROGRAM_NS = 1_000_000  # dispatching a program costs more than a longer one would notice
_NOT_RUNS = ("shard_args", "np.asarray(jax.Array)")  # parts of dispatch that start no program
_SHAPES = 4  # listed
_LONGEST = 60  # characters of a shape


def advice(figures: Figures) -> list[str]:
    """Return sentences about what took much of the time, the largest first in each kind."""
    return [
        *_host_functions(figures),
        *_crossings(figures),
        *_queueable(figures),
        *_full_queues(figures),
        *_compilations(figures),
        *_operations(figures),
        *_dispatch(figures),
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
        each = part.busy_ns // max(part.times, 1)
        if figures.share(part.wall_ns) < _MUCH or each > _LONG_CROSSING_NS:
            continue
        text = (
            f"Crossings of {figures.named(part)} took {_took(figures, part.wall_ns)}: "
            f"{part.times:,} of {time_words(each)}, without the function itself."
        )
        yield text + _cheaper(figures, part)


def _cheaper(figures: Figures, part: Part) -> str:
    if part.lowered < 0:
        return ""
    fact = figures.recording.lowered[part.lowered]
    if fact.site.flavor.startswith(OBSERVED):
        name = fact.site.flavor.removeprefix(OBSERVED)
        name = "debug_print" if fact.site.function == "debug.print" else name
        return f" This is JAX's own callback: that of jaxcb.{name} is about ten times as fast."
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
        is_python = _is_python(figures, part)
        if fact.site.flavor not in ("debug", "io") or fact.results or not is_python:
            continue
        crossings = figures.parts(PartKind.CROSSING)
        own = sum(one.wall_ns for one in crossings if one.lowered == part.lowered)
        waited = part.wall_ns + own
        if figures.share(waited) >= _SOME:
            yield (
                f"The program waited {time_words(waited)} for {figures.named(part)}, whose result "
                "it does not need: with queued=True it does not wait."
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
    programs: dict[str, list[Compilation]] = {}
    for one in figures.profile.compilations:
        programs.setdefault(one.program.name, []).append(one)
    often = [_compiled_often(name, own) for name, own in programs.items() if len(own) > 1]
    again = time_words(figures.profile.wall_ns - total)
    yield f"Compilation took {_took(figures, total)}; everything else took {again}."
    yield from often


def _compiled_often(name: str, own: list[Compilation]) -> str:
    took = time_words(sum(one.lower_ns + one.compile_ns for one in own))
    shapes = [", ".join(map(str, one.arguments)) or "no arguments" for one in own]
    distinct = list(dict.fromkeys(shapes))
    text = f"{name} was compiled {len(own)} times ({took}), "
    if len(distinct) == 1:
        return (
            f"{text}each time for {shorten(distinct[0], _LONGEST)}: define and jit the function "
            "once, outside the loop."
        )
    listed = "; ".join(shorten(one, _LONGEST) for one in distinct[:_SHAPES])
    more = f"; and {len(distinct) - _SHAPES} more" if len(distinct) > _SHAPES else ""
    return f"{text}for {listed}{more}: arguments of one shape, such as padded ones, need only one."


def _operations(figures: Figures) -> Iterator[str]:
    total = figures.profile.of_kind(PartKind.XLA)
    parts = figures.parts(PartKind.XLA)
    if figures.share(total) < 0.5 or not parts:
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
    total = figures.profile.of_kind(PartKind.DISPATCH)
    parts = figures.parts(PartKind.DISPATCH)
    parts = [part for part in parts if part.name not in _NOT_RUNS]
    runs = sum(part.times for part in parts)
    if figures.share(total) < _MUCH or not parts or total > runs * _SHORT_PROGRAM_NS:
        return
    most = max(parts, key=lambda part: part.times)
    yield (
        f"Dispatch took {_took(figures, total)}: {runs:,} programs were started, {most.name} "
        f"{most.times:,} times. One jax.jit around them starts one."
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
