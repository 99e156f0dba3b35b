"""Format shapes, counts and times for all reports."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence

from ...recording import Aval, AxisKind, Recording, SampleValues, VmapLevel, on_one_line
from ..summary import Shapes, SiteSummary, call_words
from . import _phrases

MAX_SITES = 60  # listed in text and HTML; the data has all of them
MAX_DEVICES = 8  # named for one variant
SOURCE_WIDTH = 38  # characters of a source line that a table shows
MAX_ENTRIES = 4  # entries of a list in a row of text

_ENTRY = re.compile(r"\w*[(\[][^()\[\]]*[)\]]|batched|unbatched|tiled|size-1 axis")
_LISTS = re.compile(rf"(?:{_ENTRY.pattern})(?:, (?:{_ENTRY.pattern}))+")


def shape_words(shapes: Shapes) -> str:
    """Return ``(4,), (1,) → (4,)``: the operands and results of one host call."""
    return _arrow(*call_shapes(shapes))


def shapes_in_words(variants: Sequence[Shapes]) -> list[str]:
    """Return `shape_words` of each variant of a call site.

    With dtypes, ``float32[4] → float32[4]``, where another variant differs only in these.
    """
    words = list(map(shape_words, variants))
    alike: dict[str, set[tuple]] = {}
    for said, shapes in zip(words, variants, strict=True):
        alike.setdefault(said, set()).add((shapes.operands, shapes.results))
    return [
        _arrow(map(str, shapes.operands), map(str, shapes.results))
        if len(alike[said]) > 1
        else said
        for said, shapes in zip(words, variants, strict=True)
    ]


def call_shapes(shapes: Shapes) -> tuple[list[str], list[str]]:
    """Return the shapes of the operands and of the results of one host call.

    If a mask selects elements that share one call, these are on one axis: ``(≤ 12, 5)``.
    """
    levels = shapes.levels
    if shapes.mask is None or not levels or any(level.looped for level in levels):
        return [str(aval.shape) for aval in shapes.operands], [str(a.shape) for a in shapes.results]
    size = math.prod(level.size for level in levels)
    everywhere = [level.vmap_method.batched for level in levels]
    return (
        [
            _gathered(aval, [level.axes[place] for level in levels], size)
            for place, aval in enumerate(shapes.operands)
        ],
        [_gathered(aval, everywhere, size) for aval in shapes.results],
    )


def _gathered(aval: Aval, kinds: Sequence[AxisKind], size: int) -> str:
    """Return the shape of a call for at most `size` batch elements of a batch."""
    axes = sum(kind.is_of_host for kind in kinds)
    if not axes:
        return str(aval.shape)
    one = all(kind is AxisKind.SIZE1 for kind in kinds)
    sizes = ["1" if one else _phrases.AT_MOST.format(size=size), *map(str, aval.shape[axes:])]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def status_words(summary: SiteSummary) -> str:
    """Return ``raised``, ``stopped by you in call 80``, ...; empty for kept calls."""
    word = _phrases.WORDS[summary.consequence]
    if summary.consequence == "stopped":
        return f"{word} in call {summary.calls:,}"
    return not_finite_words([summary]) if summary.consequence == "not_finite" else word


def not_finite_words(sites: Sequence[SiteSummary]) -> str:
    """Return ``NaN in 6 of 10 calls, first: call 5``, of call sites that have some."""
    word, calls = _phrases.WORDS["not_finite"], sum(one.calls for one in sites)
    bad = sum(one.not_finite_calls.calls for one in sites)
    infinite = sum(one.not_finite_calls.infinite for one in sites)
    if infinite in (0, bad) and bad:
        word = "infinity" if infinite else "NaN"
    if bad == calls == 1:
        return word
    some = f"all {call_words(calls)}"
    if bad < calls:
        some = _phrases.SOME_OF.format(some=f"{bad:,}", calls=call_words(calls))
        if any(one.not_finite_calls.at_least for one in sites):
            some = f"at least {some}"
        if len(sites) == 1 and (first := sites[0].not_finite_calls.first):
            some += f"{', first' if bad > 1 else ''}: call {first:,}"
    return f"{word} in {some}"


def rows_of(summary: SiteSummary) -> tuple[Shapes | None, ...]:
    """Return the rows of a call site: one for all its calls, and, if it has several, its variants.

    None is the row of all calls. An only variant needs no other row.
    """
    return summary.shapes if len(summary.shapes) == 1 else (None, *summary.shapes)


def one_shape(words: Iterable[str]) -> str:
    """Return the single distinct entry of `words`, or how many distinct entries there are."""
    shapes = list(dict.fromkeys(words))
    return f"{len(shapes):,} shapes" if shapes[1:] else "".join(shapes)


def _arrow(operands: Iterable[str], results: Iterable[str]) -> str:
    return f"{', '.join(operands) or _phrases.NOTHING} → {', '.join(results) or _phrases.NOTHING}"


def level_words(levels: Iterable[VmapLevel]) -> str:
    """Return ``vmap 4 × vmap 3 (batched, unbatched), sequential``, outermost vmap first.

    Arguments are listed only if not all of them are batched. Empty without vmap.
    """
    outermost_first = list(levels)[::-1]
    if not outermost_first:
        return ""
    sizes = (f"{_phrases.VMAP.format(size=v.size)}{_arguments(v)}" for v in outermost_first)
    return f"{' × '.join(sizes)}, {outermost_first[0].method}"


def _arguments(level: VmapLevel) -> str:
    if all(level.batched):
        return ""
    return f" ({', '.join(_phrases.ARGUMENTS[kind] for kind in level.axes)})"


def variant_words(shapes: Shapes) -> str:
    """Describe a variant: vmap levels, where it stopped, shards, bytes gathered for the call."""
    words = [level_words(shapes.levels), stopped_words(shapes)]
    if shapes.shards:
        count = f"{shapes.shards} shard{'' if shapes.shards == 1 else 's'}"
        words.append(f"{count}{_devices(shapes.devices)}")
    if shapes.gathered_bytes:
        words.append(_phrases.GATHERS.format(bytes=byte_words(shapes.gathered_bytes)))
    return ", ".join(filter(None, words))


def _devices(names: tuple[str, ...]) -> str:
    more = ["…"] * (len(names) > MAX_DEVICES)
    return f" ({', '.join([*names[:MAX_DEVICES], *more])})" if names else ""


def byte_words(count: int) -> str:
    """Return ``400 B``, ``4.1 kB``, ..."""
    return _in_units(count, _phrases.BYTES)


def few(words: str) -> str:
    """Cut lists of many shapes, or of what vmap does to many arguments, in a row of text.

    ``(), (2,), (2,), (), (3,) → (6,)`` becomes ``(), (2,), (2,), … 5 in all → (6,)``.
    """
    return _LISTS.sub(_first_ones, words)


def _first_ones(found: re.Match[str]) -> str:
    entries = _ENTRY.findall(found[0])
    if len(entries) <= MAX_ENTRIES:
        return found[0]
    return f"{', '.join(entries[: MAX_ENTRIES - 1])}, … {len(entries)} in all"


def shorten(source: str, width: int = SOURCE_WIDTH) -> str:
    """Cut a source line to the width of its column."""
    return source if len(source) <= width else f"{source[: width - 1]}…"


def aligned(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Return the lines of a table, whose columns in `right` are aligned to the right."""
    rows = [[on_one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def full_words(recording: Recording) -> str:
    """Count the calls that were not logged, or not counted, because the log was full.

    Empty if there are none.
    """
    kept_out = sum(one.calls for one in recording.not_kept)
    if kept_out:
        were = "was" if kept_out == 1 else "were"
        return _phrases.NO_ROW.format(calls=call_words(kept_out), were=were)
    if recording.overflow:
        return _phrases.NOT_COUNTED.format(calls=call_words(recording.overflow))
    return ""


def sample_words(sample: SampleValues, shard: int | None) -> str:
    """Return ``element 2: 0.5, 1 → 0.479``: the arguments and result of one call."""
    where = "" if shard is None else _phrases.OF_SHARD.format(shard=shard)
    where += _phrases.OF_ELEMENT.format(element=sample.element) if sample.element >= 0 else ""
    operands, results = (
        ", ".join(a) or _phrases.NOTHING for a in (sample.operands, sample.results)
    )
    return f"{where}{operands} → {_phrases.RAISED if sample.failed else results}"


def count_words(summary: SiteSummary, shapes: Shapes | None) -> str:
    """Count the calls of a site, or of one run if nothing ran: ``3 calls``, ``1 of 5 calls``."""
    if not summary.ahead:
        return _calls_made(shapes) if shapes else call_words(summary.calls)
    if summary.expected is None:
        return _phrases.DATA_DECIDE
    if summary.written in (None, summary.expected):
        return call_words(summary.expected)
    return _phrases.SOME_OF.format(some=f"{summary.expected:,}", calls=call_words(summary.written))


def _calls_made(shapes: Shapes) -> str:
    """Count the calls of a variant: ``12 calls``; ``9 of 12 calls`` if the others were not made."""
    if shapes.stopped and shapes.calls < shapes.each_time:
        of = call_words(shapes.each_time)
        return _phrases.SOME_OF.format(some=f"{shapes.calls:,}", calls=of)
    return call_words(shapes.calls)


def stopped_words(shapes: Shapes) -> str:
    """Return ``stopped at element 8``; empty if each crossing made all of its calls."""
    if not shapes.stopped:
        return ""
    element, count = shapes.stopped
    phrase = _phrases.STOPPED if count == 1 else _phrases.STOPPED_OFTEN
    return phrase.format(element=f"{element:,}", count=f"{count:,}")


def time_words(ns: int) -> str:
    """Return ``41 µs``: nanoseconds in the unit that leaves at most three digits."""
    return _in_units(ns, _phrases.TIMES)


def _in_units(amount: int, units: Sequence[tuple[str, int]]) -> str:
    fitting = (one for one in units if amount < 999.5 * one[1])
    unit, scale = next(fitting, units[-1])
    return f"{amount / scale:.3g} {unit}"


def left_out(sites: list[SiteSummary]) -> str:
    """Count the sites that a table does not list; empty if it lists all."""
    more = len(sites) - MAX_SITES
    return _phrases.NOT_LISTED.format(count=more) if more > 0 else ""


def remarks(summary: SiteSummary, times: bool) -> list[str]:
    """Return reason and advice, notes, and advice on a slow vmap, which needs `times`."""
    advice = loop_advice(summary) if times else ""
    return [text for text in (note(summary), *summary.notes, advice) if text]


def loop_advice(summary: SiteSummary) -> str:
    """Return advice on a vmap that loops; empty if it costs little or needs to loop."""
    calls, fewer, host_ns = summary.loop
    if not fewer or host_ns < _phrases.SLOW_NS:
        return ""
    return (
        "vmap makes one call for each batch element; if the function can take a batch, "
        f"vmap_method='expand_dims' makes {call_words(fewer)} instead of {calls:,}; if each call "
        "takes milliseconds, executor= makes them in parallel"
    )


def note(summary: SiteSummary) -> str:
    """Return reason and advice of a call site; empty if its calls are simply kept."""
    text = summary.why
    return f"{summary.elided} elided: {text}" if text and summary.elided else text
