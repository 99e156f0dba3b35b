"""Format shapes, counts and times for all reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from ...recording import Recording, SampleValues, on_one_line
from . import _phrases

MAX_SITES = 60  # listed in text and HTML; the data has all of them
SOURCE_WIDTH = 38  # characters of a source line that a table shows
NOTHING = "nothing"  # no operands, no results
MAX_ENTRIES = 4  # entries of a list in a row of text

_ENTRY = re.compile(r"(?:\d+ × )?\w*[(\[][^()\[\]]*[)\]]|batched|unbatched|tiled|size-1 axis")
_LISTS = re.compile(rf"(?:{_ENTRY.pattern})(?:, (?:{_ENTRY.pattern}))+")


def counted(count: int, noun: str) -> str:
    """``1 run``, ``12,000 runs``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def call_words(count: int) -> str:
    """``1 call``, ``12,000 calls``."""
    return counted(count, "call")


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
    """Count the calls that were not logged because the log was full; empty if there are none."""
    count = recording.overflow
    were = "was" if count == 1 else "were"
    return f"the log was full: {call_words(count)} {were} counted but not logged" if count else ""


def time_words(ns: int) -> str:
    """Return ``41 µs``: nanoseconds in the unit that leaves at most three digits."""
    return _in_units(ns, _phrases.TIMES)


def _in_units(amount: int, units: Sequence[tuple[str, int]]) -> str:
    fitting = (one for one in units if amount < 999.5 * one[1])
    unit, scale = next(fitting, units[-1])
    return f"{amount / scale:.3g} {unit}"


def left_out(sites: Sequence[object]) -> str:
    """Count the sites that a table does not list; empty if it lists all."""
    more = len(sites) - MAX_SITES
    return _phrases.NOT_LISTED.format(count=more) if more > 0 else ""


def sample_words(sample: SampleValues, shard: int | None) -> str:
    """Return ``element 2: 0.5, 1 → 0.479``: the arguments and result of one call."""
    where = "" if shard is None else f"shard {shard}: "
    where += f"element {sample.element}: " if sample.element >= 0 else ""
    operands, results = (", ".join(a) or NOTHING for a in (sample.operands, sample.results))
    returned = f"{_phrases.SIGNS['raised']} raised" if sample.failed else results
    return f"{where}{operands} → {returned}"
