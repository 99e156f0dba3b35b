"""Say what callbacks cost, and what would make them cheaper, each with its figure."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from ...recording import (
    OBSERVED,
    Aval,
    LoweredSite,
    NoteKind,
    Part,
    PartKind,
)
from ..summary import could_have_mask, shorten, time_words
from ._figures import MUCH, SOME, Figures, is_mostly_cost, took

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
_IF_NO_BATCH = (
    "; if not, executor= makes several calls at once, and compile='numba' makes each one faster "
    "if numba can compile the function"
)
# Batch elements that vmap calls it for although they do not need it.
_NOT_NEEDED = {
    NoteKind.FINISHED_ELEMENTS_RUN: "have finished the loop",
    NoteKind.ALL_BRANCHES_RUN: "do not take its branch",
}


def callback_advice(figures: Figures) -> list[str]:
    """Return sentences about callbacks, those that took longest first in each kind."""
    return [*_host_functions(figures), *_crossings(figures)]


def _host_functions(figures: Figures) -> Iterator[str]:
    for part in figures.parts(PartKind.HOST):
        if figures.share(part.wall_ns) < MUCH or part.lowered < 0:
            continue
        each = part.busy_ns // max(part.times, 1)
        text = f"{figures.named(part)} took {took(figures, part.wall_ns)}: "
        text += f"{part.times:,} calls of {time_words(each)}." if part.times > 1 else "1 call."
        yield text + _in_vain(figures, part) + _batched(figures, part)


def _in_vain(figures: Figures, part: Part) -> str:
    """Say which calls a mask leaves out; empty if none, or if they cannot have a mask."""
    recording = figures.recording
    site = recording.lowered[part.lowered].site
    lowered = [fact for fact in recording.lowered if fact.site == site]
    if not could_have_mask(site, lowered):
        return ""
    outcomes = (outcome for outcome in recording.outcomes if outcome.site == site)
    kinds = {note.kind for outcome in outcomes for note in outcome.notes}
    whose = " and ".join(words for kind, words in _NOT_NEEDED.items() if kind in kinds)
    if not whose:
        return ""
    return (
        f" It may also be called for batch elements that {whose}; leave these out with the method "
        ".where(predicate, ...) of a registered callback."
    )


def _batched(figures: Figures, part: Part, wanted: float = MUCH) -> str:
    """Say how many calls a vmap method without a loop would make; empty if it gains little.

    Args:
        figures: of the profile.
        part: a host function, or its crossings.
        wanted: which share of the time the calls in a loop must have.
    """
    rows, recording = figures.rows(part), figures.recording
    flavor = recording.lowered[part.lowered].site.flavor
    if (
        recording.lowered[part.lowered].library
        or flavor not in ("pure", "io", "debug", "jax pure")
        or not figures.run_in_python(rows)
    ):
        return ""
    looped = calls = looped_ns = 0
    for number in np.unique(rows["lowered"]).tolist():
        own = rows[rows["lowered"] == number]
        fact = recording.lowered[number]
        elements = _elements(fact)
        if elements > 1:
            looped += len(own)
            calls += (
                len(own) // elements if fact.site.is_of_jax else len(np.unique(own["crossing"]))
            )
            looped_ns += int((own["end_ns"] - own["start_ns"]).sum())
    if not looped or 2 * calls > looped or figures.share(looped_ns) < wanted:
        return ""
    some = "one" if looped == part.times else f"{looped:,} of them, one"
    is_debug = flavor == "debug"
    return (
        f" vmap makes {some} for each batch element. If the function can take a batch, "
        f"vmap_method='expand_dims'{' without ordered=True' * is_debug} makes {calls:,} instead"
        f"{_IF_NO_BATCH * (flavor in ('pure', 'io'))}."
    )


def _elements(fact: LoweredSite) -> int:
    """Return how many calls a vmap makes in place of one; of JAX's own, the program loops."""
    if not fact.site.is_of_jax:
        return fact.elements or 1
    return math.prod(level.size for level in fact.levels if level.looped)


def _crossings(figures: Figures) -> Iterator[str]:
    for part in figures.parts(PartKind.CROSSING):
        each = part.busy_ns // max(part.times, 1)
        if figures.share(part.wall_ns) < MUCH or is_mostly_cost(figures, part):
            continue
        count = f"{part.times:,} of {time_words(each)}" if part.times > 1 else "1 crossing"
        text = f"Crossings of {figures.named(part)} took {took(figures, part.wall_ns)}: {count}"
        if part.lowered < 0 and figures.recording.overflow:
            yield f"{text}, with calls of the function that did not fit into the log."
            continue
        text += ", without the function itself."
        if part.lowered < 0:
            yield text
        else:
            fact = figures.recording.lowered[part.lowered]
            long = each > _LONG_CROSSING_NS
            text += _long(fact, each) if long else _cheaper(figures, part, fact)
            yield text + (_fewer(figures, part) if fact.site.is_of_jax else "")


def _fewer(figures: Figures, part: Part) -> str:
    """Say how many crossings of JAX's own callback a vmap would need; empty if that is said."""
    hosts = (one for one in figures.parts(PartKind.HOST) if one.lowered >= 0)
    sites = {figures.recording.lowered[one.lowered].site: one for one in hosts}
    host = sites.get(figures.recording.lowered[part.lowered].site)
    if host is not None and figures.share(host.wall_ns) >= MUCH and _batched(figures, host):
        return ""
    return _batched(figures, part, wanted=0.0)


def _long(fact: LoweredSite, each_ns: int) -> str:
    """Say why a single crossing is long: its arrays are large, or it waited."""
    operands, results = (
        shorten(", ".join(map(str, avals)) or "nothing", _LONGEST)
        for avals in (fact.operands, fact.results)
    )
    if each_ns <= _COPYING_NS * _bytes(fact):
        return f" Each hands over {operands} and gets {results} back."
    return (
        " Arrays of this size are copied sooner: the crossing waited for the GIL or for a CPU, "
        "which other threads used."
    )


def _cheaper(figures: Figures, part: Part, fact: LoweredSite) -> str:
    """Say which callback would cross sooner, and how much time that saves."""
    if fact.library:
        return f" It is in {fact.library}; nothing to change."
    if fact.site.flavor.startswith(OBSERVED):
        each = _CROSSING_NS + _BYTE_NS * _bytes(fact)
        own = time_words(round(each))
        way = f"This is JAX's own callback; jaxcb.{drop_in(fact)} takes about {own}"
    elif fact.site.flavor == "pure" and figures.run_in_python(figures.rows(part)):
        each = _COMPILED_NS
        way = f"If numba can compile the function, compile='numba' takes {time_words(each)}"
    else:
        return ""
    saved = round(part.wall_ns - part.times * each)
    if figures.share(saved) < SOME:
        return ""
    return f" {way} for each, which saves up to {time_words(saved)}."


def drop_in(fact: LoweredSite) -> str:
    """Return the name of the callback that has the signature of one of JAX's own."""
    if fact.site.function == "debug.print":
        return "debug_print"
    return _DROP_INS.get(fact.site.flavor.removeprefix(OBSERVED), "pure_callback")


def _bytes(fact: LoweredSite) -> int:
    return sum(_bytes_of(aval) for aval in (*fact.operands, *fact.results))


def _bytes_of(aval: Aval) -> int:
    digits = "".join(filter(str.isdigit, aval.dtype.split("_")[0])) or "8"
    return int(np.prod(aval.shape, dtype=np.int64)) * max(1, int(digits) // 8)
