"""The words every report uses for shapes, counts and times."""

from __future__ import annotations

from collections.abc import Iterable

from ..recording import Aval, VmapLevel
from ._summary import Shapes, SiteSummary

MAX_SITES = 60  # that text and HTML list; the data has all
SOURCE_WIDTH = 38  # characters of a source line that a table shows


def shape_words(shapes: Shapes) -> str:
    """``(4,), (1,) → (4,)``: what one host call sees, and answers."""
    return f"{_list(shapes.operands)} → {_list(shapes.results)}"


def _list(avals: Iterable[Aval]) -> str:
    return ", ".join(str(aval.shape) for aval in avals) or "nothing"


def level_words(levels: Iterable[VmapLevel]) -> str:
    """``vmap 4 × vmap 3, sequential``: outermost first; empty without vmap."""
    outermost_first = list(levels)[::-1]
    if not outermost_first:
        return ""
    sizes = " × ".join(f"vmap {level.size}" for level in outermost_first)
    return f"{sizes}, {outermost_first[0].method}"


def shorten(source: str) -> str:
    """A source line, cut to the width of its column."""
    return source if len(source) <= SOURCE_WIDTH else f"{source[: SOURCE_WIDTH - 1]}…"


def call_words(count: int) -> str:
    """``1 call``, ``12,000 calls``."""
    return f"{count:,} call{'' if count == 1 else 's'}"


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
    parts = []
    for name, flavor in dict.fromkeys((s.site.function, s.site.flavor) for s in sites):
        own = [s for s in sites if (s.site.function, s.site.flavor) == (name, flavor)]
        words = [name, flavor, call_words(sum(s.calls for s in own))]
        shapes = list(dict.fromkeys(shape_words(shape) for s in own for shape in s.shapes))
        if shapes:
            words.append(shapes[0] if len(shapes) == 1 else f"{len(shapes)} shapes")
        if times and any(s.calls for s in own):
            words.append(time_words(sum(s.host_ns for s in own)))
        failed = [error for s in own for error in s.errors]
        if failed:
            words.append(f"✕ {shorten(failed[0].splitlines()[0])}")
        elided = sum(s.elided for s in own)
        if elided:
            words.append(f"✕ {elided} elided")
        parts.append(" · ".join(words))
    return "   ".join(parts)


def note(summary: SiteSummary) -> str:
    """Why a site is not simply live, and what to do about it; empty if it is."""
    if not summary.reason:
        return ""
    text = f"{summary.reason}; {summary.remedy}"
    return f"{summary.elided} elided: {text}" if summary.elided else text
