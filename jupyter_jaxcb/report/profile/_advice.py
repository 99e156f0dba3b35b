"""Say what a profile means and what would save time: sentences, each with its figure.

`_OF_PARTS` and `_OF_KINDS` list them, with the share of the wall time from which they are said.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from ...recording import (
    BACKGROUND,
    OBSERVED,
    OTHER,
    PYTHON_OF_JAX,
    Compilation,
    LoweredSite,
    NoteKind,
    Part,
    PartKind,
    Site,
)
from ..summary import Retraces, could_have_mask, retraces, shorten, time_words
from ._figures import Figures, share_words

_MUCH = 0.1  # share of the wall time that is worth a sentence
_SOME = 0.05  # share of the wall time that is worth saving
_LARGE = 0.25  # of the wall time: an operation that is expected to take some
_BUSY = 0.8  # of the wall time: a queue with more room would not end sooner
_LARGE_COPY_NS = 50_000  # a copy that takes longer is that of a large array
_SHORT_PROGRAM_NS = 1_000_000  # dispatching a program costs more than a longer one would notice
# Parts of dispatch that start no program; the second one waits for a result.
_NO_RUN, _WAITS = "shard_args", "np.asarray(jax.Array)"
_MANY = 20  # programs started: fewer are not worth joining
_LISTED = 3  # functions that were compiled several times
# What a crossing of our callbacks takes, see docs/benchmarks.md: a fixed time, and per byte.
_CROSSING_NS, _BYTE_NS = 3000, 0.1
_COMPILED_NS = 100  # what a crossing into compiled code takes
_LONG_CROSSING_NS = 1_000_000
_COPYING_NS = 1  # per byte: a crossing that takes longer than copying waited for something else
_LONGEST = 60  # characters of arguments
# JAX's own callbacks, and the callbacks with the same signature.
_DROP_INS = {
    "pure": "pure_callback",
    "io": "io_callback",
    "debug": "debug_callback",
    "buffer": "buffer_callback",
}
# Batch elements that vmap calls it for although they do not need it.
_NOT_NEEDED = {
    NoteKind.FINISHED_ELEMENTS_RUN: "have finished the loop",
    NoteKind.ALL_BRANCHES_RUN: "do not take its branch",
}


def advice(figures: Figures) -> list[str]:
    """Return sentences about what took much of the time, the largest first in each kind."""
    found: list[str] = []
    for kind, least, words in _OF_PARTS:
        for part in figures.parts(kind):
            if figures.share(part.wall_ns) >= least:
                found += words(figures, part)
    for kind, least, words in _OF_KINDS:
        total = figures.profile.of_kind(kind)
        if total and figures.share(total) >= least:
            found += words(figures, total)
    return found


def queueable(figures: Figures) -> Iterator[tuple[Site, str]]:
    """Yield the callbacks that the program waits for without needing a result, and what to say."""
    for part in figures.parts(PartKind.HOST):
        for sentence in _queueable(figures, part):
            yield figures.recording.lowered[part.lowered].site, sentence


def _host_function(figures: Figures, part: Part) -> Iterator[str]:
    if part.lowered >= 0:
        each = time_words(part.busy_ns // max(part.times, 1))
        calls = f"{part.times:,} calls of {each}" if part.times > 1 else "1 call"
        took = f"{figures.named(part)} took {figures.took(part.wall_ns)}: {calls}."
        yield took + _in_vain(figures, part) + _batched(figures, part)


def _in_vain(figures: Figures, part: Part) -> str:
    """Say which calls a mask leaves out; empty if none, or if they cannot have a mask."""
    recording = figures.recording
    site = recording.lowered[part.lowered].site
    outcomes = (outcome for outcome in recording.outcomes if outcome.site == site)
    kinds = {note.kind for outcome in outcomes for note in outcome.notes}
    whose = " and ".join(words for kind, words in _NOT_NEEDED.items() if kind in kinds)
    if not whose or not could_have_mask(site, [f for f in recording.lowered if f.site == site]):
        return ""
    return (
        f" It may also be called for batch elements that {whose}; leave these out with the method "
        ".where(predicate, ...) of a registered callback."
    )


def _batched(figures: Figures, part: Part, least: float = _MUCH) -> str:
    """Say how many calls a vmap method without a loop would make; empty if it gains little.

    Args:
        figures: of the profile.
        part: a host function, or its crossings.
        least: the share of the time that the calls in a loop must have.
    """
    fact = figures.recording.lowered[part.lowered]
    flavor = fact.site.flavor
    can_batch = flavor in ("pure", "io", "debug", "jax pure") and not fact.library
    if not can_batch or not figures.run_in_python(part):
        return ""
    rows = figures.rows(part)
    looped = calls = looped_ns = 0
    for number in np.unique(rows["lowered"]).tolist():
        own, fact = rows[rows["lowered"] == number], figures.recording.lowered[number]
        elements = fact.elements or 1  # calls that a vmap makes in place of one
        if fact.site.is_of_jax:  # the program loops
            elements = math.prod(level.size for level in fact.levels if level.looped)
        if elements > 1:
            looped += len(own)
            crossings = len(np.unique(own["crossing"]))
            calls += len(own) // elements if fact.site.is_of_jax else crossings
            looped_ns += int((own["end_ns"] - own["start_ns"]).sum())
    if not looped or 2 * calls > looped or figures.share(looped_ns) < least:
        return ""
    some = "one" if looped == part.times else f"{looped:,} of them, one"
    unordered = " without ordered=True" if flavor == "debug" else ""
    otherwise = (
        "; if not, executor= makes several calls at once, and compile='numba' makes each one "
        "faster if numba can compile the function"
    )
    return (
        f" vmap makes {some} for each batch element. If the function can take a batch, "
        f"vmap_method='expand_dims'{unordered} makes {calls:,} instead"
        f"{otherwise if flavor in ('pure', 'io') else ''}."
    )


def _crossing(figures: Figures, part: Part) -> Iterator[str]:
    if figures.is_mostly_cost(part):
        return
    each = part.busy_ns // max(part.times, 1)
    count = f"{part.times:,} of {time_words(each)}" if part.times > 1 else "1 crossing"
    text = f"Crossings of {figures.named(part)} took {figures.took(part.wall_ns)}: {count}"
    if part.lowered < 0 and figures.recording.overflow:
        yield f"{text}, with calls of the function that did not fit into the log."
        return
    text += ", without the function itself."
    if part.lowered >= 0:
        fact = figures.recording.lowered[part.lowered]
        is_long = each > _LONG_CROSSING_NS
        text += _long(fact, each) if is_long else _cheaper(figures, part, fact)
        hosts = (one for one in figures.parts(PartKind.HOST) if one.lowered >= 0)
        sites = {figures.recording.lowered[one.lowered].site: one for one in hosts}
        host = sites.get(fact.site)
        is_said = host and figures.share(host.wall_ns) >= _MUCH and _batched(figures, host)
        if fact.site.is_of_jax and not is_said:  # each call of these is a crossing
            text += _batched(figures, part, least=0.0)
    yield text


def _long(fact: LoweredSite, each_ns: int) -> str:
    """Say why a single crossing is long: its arrays are large, or it waited."""
    if each_ns > _COPYING_NS * _bytes(fact):
        return (
            " Arrays of this size are copied sooner: the crossing waited for the GIL or for a CPU, "
            "which other threads used."
        )
    operands, results = (
        shorten(", ".join(map(str, avals)) or "nothing", _LONGEST)
        for avals in (fact.operands, fact.results)
    )
    return f" Each hands over {operands} and gets {results} back."


def _cheaper(figures: Figures, part: Part, fact: LoweredSite) -> str:
    """Say which callback would cross sooner, and how much time that saves."""
    if fact.library:
        return f" It is in {fact.library}; nothing to change."
    if fact.site.is_of_jax:
        each = _CROSSING_NS + _BYTE_NS * _bytes(fact)
        own = time_words(round(each))
        way = f"This is JAX's own callback; jaxcb.{_drop_in(fact)} takes about {own}"
    elif fact.site.flavor == "pure" and figures.run_in_python(part):
        each = _COMPILED_NS
        way = f"If numba can compile the function, compile='numba' takes {time_words(each)}"
    else:
        return ""
    saved = round(part.wall_ns - part.times * each)
    if figures.share(saved) < _SOME:
        return ""
    return f" {way} for each, which saves up to {time_words(saved)}."


def _drop_in(fact: LoweredSite) -> str:
    """Return the name of the callback that has the signature of one of JAX's own."""
    if fact.site.function == "debug.print":
        return "debug_print"
    return _DROP_INS.get(fact.site.flavor.removeprefix(OBSERVED), "pure_callback")


def _bytes(fact: LoweredSite) -> int:
    total = 0
    for aval in (*fact.operands, *fact.results):
        digits = "".join(filter(str.isdigit, aval.dtype.split("_")[0])) or "8"
        total += math.prod(aval.shape) * max(1, int(digits) // 8)
    return total


def _queueable(figures: Figures, part: Part) -> Iterator[str]:
    if part.lowered < 0:
        return
    fact = figures.recording.lowered[part.lowered]
    flavor = fact.site.flavor.removeprefix(OBSERVED)
    if flavor not in ("debug", "io") or fact.results or fact.library:
        return
    crossings = figures.parts(PartKind.CROSSING)
    own = sum(one.wall_ns for one in crossings if one[1:3] == part[1:3])  # name and place
    waited = part.wall_ns + own
    # What the program can do meanwhile: at the end of the block, it waits for the queue.
    saved = min(part.wall_ns, figures.profile.wall_ns - waited)
    if figures.share(saved) >= _SOME and figures.run_in_python(part):
        call = f"jaxcb.{_drop_in(fact)}(..., queued=True)"
        yield (
            f"The program waited {time_words(waited)} for {figures.named(part)}, whose result it "
            f"does not need. With {call if fact.site.is_of_jax else 'queued=True'} it goes on "
            f"meanwhile, which saves up to {time_words(saved)}."
        )


def _full_queue(figures: Figures, part: Part) -> Iterator[str]:
    calls = figures.parts(BACKGROUND)
    busy = sum(one.busy_ns for one in calls if one.lowered == part.lowered)
    saved = min(part.wall_ns, figures.profile.wall_ns - busy)
    way = (
        f"Its calls took {time_words(busy)}, one after the other, so more room would not help. "
        "Call it less often, or drop calls with on_full='drop'."
        if figures.share(busy) >= _BUSY
        else f"More room, with jaxcb.set_queue_limit, saves up to {time_words(saved)}."
    )
    yield (
        f"The program waited {time_words(part.wall_ns)} for room in the queue of "
        f"{figures.named(part)}. {way}"
    )


def _compilation(figures: Figures, total: int) -> Iterator[str]:
    compilations = figures.profile.compilations
    again = retraces(compilations)
    # Another process compiles again, and so does a run that makes its functions anew.
    once = (
        " Later calls of the same jitted functions in this process, with arguments of the same "
        "shapes and types, save it."
    )
    yield f"Compilation took {figures.took(total)}.{'' if again else once}"
    with_callbacks = {fact.program for fact in figures.recording.lowered}
    of_jax = [one for one in compilations if not one.code and one.program not in with_callbacks]
    found = [(_compile_ns(one.compilations), _retraced(one)) for one in again]
    if len(of_jax) > 1:
        ns, times = _compile_ns(of_jax), Counter(one.program.name for one in of_jax)
        named = [(name.removeprefix("jit_"), n) for name, n in times.most_common(2)]
        names = " and ".join(f"{name} ({n} times)" if n > 1 else name for name, n in named)
        words = (
            f"Single functions of JAX, such as {names}, are {len(of_jax)} programs "
            f"({time_words(ns)}): put jax.jit around the function that calls them to make them one "
            "program."
        )
        found.append((ns, words))
    found.sort(key=lambda one: -one[0])
    yield from (words for ns, words in found[:_LISTED] if figures.share(ns) >= _SOME)


def _compile_ns(compilations: Iterable[Compilation]) -> int:
    return sum(one.lower_ns + one.compile_ns for one in compilations)


def _retraced(one: Retraces) -> str:
    took = time_words(_compile_ns(one.compilations))
    padded = ": arguments of one shape, such as padded ones, need only one"
    return f"{one.times} ({took}){one.reason}{padded if one.has_other_sizes else ''}."


def _operations(figures: Figures, total: int) -> Iterator[str]:
    largest = figures.parts(PartKind.XLA)[0]
    if not figures.is_mostly_cost(largest):
        of_host, crossing = map(figures.profile.of_kind, (PartKind.HOST, PartKind.CROSSING))
        callbacks = f", callbacks {share_words(figures.share(of_host + crossing))}"
        yield (
            f"XLA took {figures.took(total)}{callbacks if figures.recording.lowered else ''}. Its "
            f"largest operation is {figures.named(largest)}: {time_words(largest.wall_ns)}."
        )


def _copies(figures: Figures, total: int) -> Iterator[str]:
    count = sum(part.times for part in figures.parts(PartKind.COPY))
    each = total // max(count, 1)
    again = " If you pass an array again, pass jax.device_put(array), which copies it once."
    yield (
        f"Copies took {figures.took(total)}: {count:,} of {time_words(each)}."
        f"{again if each >= _LARGE_COPY_NS else ''}"
    )


def _dispatch(figures: Figures, _: int) -> Iterator[str]:
    parts = [part for part in figures.parts(PartKind.DISPATCH) if part.name != _WAITS]
    of_jax = [part for part in parts if part.name == PYTHON_OF_JAX]
    total = sum(part.wall_ns for part in of_jax)
    if figures.share(total) >= _MUCH:
        yield (
            f"JAX's own Python took {figures.took(total)}, {time_words(of_jax[0].wall_ns)} of it "
            f"in {figures.where(of_jax[0])}. It runs when JAX starts, and each time a function "
            "without jax.jit around it is transformed."
        )
    total = sum(part.wall_ns for part in parts) - total
    programs = [part for part in parts if part.name not in (PYTHON_OF_JAX, _NO_RUN)]
    runs = sum(part.times for part in programs)
    if figures.share(total) >= _MUCH and runs >= _MANY and total <= runs * _SHORT_PROGRAM_NS:
        most = max(programs, key=lambda part: (part.name != OTHER, part.times))
        yield (
            f"Dispatch took {figures.took(total)}: JAX started {runs:,} programs, {most.name} "
            f"{most.times:,} times. With one jax.jit around them it starts one, which saves up to "
            f"{time_words(total - total // runs)}."
        )


def _alone_in_queue(figures: Figures, total: int) -> Iterator[str]:
    most = figures.parts(BACKGROUND)[0]
    yield (
        f"Only queued host functions ran for {figures.took(total)}, mostly {figures.named(most)}: "
        "the program had ended, or waited for them."
    )


def _python(figures: Figures, total: int) -> Iterator[str]:
    yield f"Python outside of JAX took {figures.took(total)}{_most_in(figures, PartKind.PYTHON)}."


def _idle(figures: Figures, total: int) -> Iterator[str]:
    yield (
        f"The block's thread was idle for {figures.took(total)}{_most_in(figures, PartKind.IDLE)}: "
        "it slept, or waited for a file, a CPU, the GIL or another thread."
    )


def _most_in(figures: Figures, kind: PartKind) -> str:
    """Name the line that took most of the time of a kind; empty if it is not known."""
    most = figures.parts(kind)[0]
    return f", {time_words(most.wall_ns)} of it in {figures.where(most)}" if most.place else ""


_OF_PARTS: tuple[tuple[PartKind, float, Callable[[Figures, Part], Iterable[str]]], ...] = (
    (PartKind.HOST, _MUCH, _host_function),
    (PartKind.CROSSING, _MUCH, _crossing),
    (PartKind.HOST, _SOME, _queueable),
    (PartKind.WAITING, _SOME, _full_queue),
)
_OF_KINDS: tuple[tuple[PartKind, float, Callable[[Figures, int], Iterable[str]]], ...] = (
    (PartKind.COMPILATION, _MUCH, _compilation),
    (PartKind.XLA, _LARGE, _operations),
    (PartKind.COPY, _MUCH, _copies),
    (PartKind.DISPATCH, _MUCH, _dispatch),
    (BACKGROUND, _MUCH, _alone_in_queue),
    (PartKind.PYTHON, _MUCH, _python),
    (PartKind.IDLE, _MUCH, _idle),
)
