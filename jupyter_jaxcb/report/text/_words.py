"""The words every report uses for shapes, counts and times."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...recording import Aval, Preview, Recording, VmapLevel
from ..summary import Shapes, SiteSummary, call_words

MAX_SITES = 60  # that text and HTML list; the data has all
MAX_DEVICES = 8  # that are named
SOURCE_WIDTH = 38  # characters of a source line that a table shows


def shape_words(shapes: Shapes, among: Iterable[Shapes] = ()) -> str:
    """``(4,), (1,) → (4,)``: what one host call sees, and answers.

    With dtypes, ``float32[4] → float32[4]``, where only these differ from one of `among`.
    """
    words = _arrow(shapes, lambda aval: str(aval.shape))
    own = shapes.operands, shapes.results
    others = (other for other in among if (other.operands, other.results) != own)
    if any(_arrow(other, lambda aval: str(aval.shape)) == words for other in others):
        return _arrow(shapes, str)
    return words


def shapes_of(summary: SiteSummary) -> str:
    """The shapes of a site in a few words: ``() → (5,)``, ``3 shapes``; empty if it has none."""
    shapes = list(dict.fromkeys(map(shape_words, summary.shapes)))
    return shapes[0] if len(shapes) == 1 else f"{len(shapes)} shapes" if shapes else ""


def _arrow(shapes: Shapes, say: Callable[[Aval], str]) -> str:
    given, answered = (", ".join(map(say, a)) for a in (shapes.operands, shapes.results))
    return f"{given or 'nothing'} → {answered or 'nothing'}"


# What an argument that a vmap does not map over looks like to the host function.
_NOT_MAPPED = {"expand_dims": "size 1", "broadcast_all": "broadcast"}


def level_words(levels: Iterable[VmapLevel]) -> str:
    """``vmap 4 × vmap 3 (mapped, shared), sequential``: outermost first; empty without vmap.

    What becomes of each argument is said where not all are mapped.
    """
    outermost_first = list(levels)[::-1]
    if not outermost_first:
        return ""
    sizes = " × ".join(f"vmap {level.size}{_arguments(level)}" for level in outermost_first)
    return f"{sizes}, {outermost_first[0].method}"


def _arguments(level: VmapLevel) -> str:
    if all(level.batched):
        return ""
    other = _NOT_MAPPED.get(level.method, "shared")
    return f" ({', '.join('mapped' if on else other for on in level.batched)})"


def way_words(shapes: Shapes) -> str:
    """How the calls came about: vmaps, shards, what was gathered for them."""
    words = [level_words(shapes.levels)]
    if shapes.shards:
        count = f"{shapes.shards} shard{'' if shapes.shards == 1 else 's'}"
        words.append(f"{count}{_devices(shapes.devices)}")
    if shapes.gathered_bytes:
        words.append(f"gathers {byte_words(shapes.gathered_bytes)}")
    return ", ".join(filter(None, words))


def _devices(names: tuple[str, ...]) -> str:
    more = ["…"] * (len(names) > MAX_DEVICES)
    return f" ({', '.join([*names[:MAX_DEVICES], *more])})" if names else ""


def byte_words(count: int) -> str:
    """``400 B``, ``4.1 kB``."""
    for unit, scale in (("B", 1), ("kB", 1_000), ("MB", 1_000_000)):
        if count < 999.5 * scale:
            return f"{count / scale:.3g} {unit}"
    return f"{count / 1_000_000_000:.3g} GB"


def shorten(source: str, width: int = SOURCE_WIDTH) -> str:
    """A source line, cut to the width of its column."""
    return source if len(source) <= width else f"{source[: width - 1]}…"


def full_words(recording: Recording) -> str:
    """How many host calls have no row, or are in no count, as the log was full; empty: none."""
    counted = sum(one.calls for one in recording.not_kept)
    if counted:
        were = "was" if counted == 1 else "were"
        return f"the log was full: {call_words(counted)} of these {were} counted and have no row"
    if recording.overflow:
        return f"{call_words(recording.overflow)} more, not in these counts: the log was full"
    return ""


def preview_words(preview: Preview, shard: int | None) -> str:
    """``lane 2: 0.5, 1 → 0.479``: what a call was given and answered."""
    shard_words = "" if shard is None else f"shard {shard}: "
    where = f"{shard_words}lane {preview.lane}: " if preview.lane >= 0 else shard_words
    given = ", ".join(preview.operands) or "nothing"
    answer = "✕ raised" if preview.failed else ", ".join(preview.results) or "nothing"
    return f"{where}{given} → {answer}"


def count_words(summary: SiteSummary, shapes: Shapes | None) -> str:
    """How many calls a site made, or would make in a run: ``3 calls``, ``1 of 5 calls``."""
    if not summary.ahead:
        return call_words(shapes.calls if shapes else 0)
    if summary.expected is None:
        return "as data decide"
    if summary.written in (None, summary.expected):
        return call_words(summary.expected)
    return f"{summary.expected:,} of {call_words(summary.written)}"


def time_words(ns: int) -> str:
    """``41 µs``: nanoseconds in the unit that leaves at most three digits."""
    for unit, scale in (("ns", 1), ("µs", 1_000), ("ms", 1_000_000)):
        if ns < 999.5 * scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns / 1_000_000_000:.3g} s"


def left_out(sites: list[SiteSummary]) -> str:
    """How many sites a table does not list; empty if it lists all."""
    more = len(sites) - MAX_SITES
    return f"{more} more sites are not listed" if more > 0 else ""


def headline(sites: list[SiteSummary], times: bool) -> str:
    """The one-line summary: each host function once, with what was elided of it."""
    by_function: dict[tuple[str, str], list[SiteSummary]] = {}
    for summary in sites:
        key = (summary.site.function, summary.site.flavor)
        by_function.setdefault(key, []).append(summary)
    parts = []
    for (name, flavor), own in by_function.items():
        words = [name, flavor, _calls_of(own)]
        shapes = list(dict.fromkeys(shape_words(shape) for s in own for shape in s.shapes))
        if shapes:
            words.append(shapes[0] if len(shapes) == 1 else f"{len(shapes)} shapes")
        if times and any(s.calls for s in own):
            words.append(time_words(sum(s.host_ns for s in own)))
        failed = next((error for s in own for error in s.errors), None)
        if failed is not None:
            first_line = next(filter(None, failed.splitlines()), "raised")
            words.append(f"✕ {shorten(first_line)}")
        elided = sum(s.elided for s in own)
        if elided:
            words.append(f"✕ {elided} elided")
        parts.append(" · ".join(words))
    return "   ".join(parts)


def _calls_of(sites: list[SiteSummary]) -> str:
    if not any(site.ahead for site in sites):
        return call_words(sum(site.calls for site in sites))
    expected = [site.expected for site in sites]
    if None in expected:
        return "calls depend on data"
    return f"{call_words(sum(filter(None, expected)))} a run"


def note(summary: SiteSummary) -> str:
    """Why a site is not simply live, and what to do about it; empty if it is."""
    if not summary.reason:
        return ""
    text = f"{summary.reason}; {summary.remedy}"
    return f"{summary.elided} elided: {text}" if summary.elided else text
