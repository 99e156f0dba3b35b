"""Pack host calls into columns of bytes for the front end.

Little-endian, one column after the other: start (u32, since the previous row), duration (u32),
element (i32), variant, thread, error (u16 each); times in units of `CallColumns.unit_ns`. A variant
is an index into the `Shapes` of all sites, concatenated in order. The crossings (u32) are apart, so
that front ends that do not know them read the rest.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...recording import NotFiniteCall, Recording, SampleValues, Site
from ..summary import SiteSummary
from ._documents import SavedCallsView
from ._site_view import Marks

OUT_OF_RANGE = 0xFFFF  # a variant, thread or error whose number does not fit into 16 bits
_LARGEST = 0xFFFF_FFFF


class CallColumns(NamedTuple):
    """Packed host calls, sorted by start."""

    rows: int
    unit_ns: int  # of the times; at least the requested unit
    base_ns: int  # of the recorder's clock; the first start counts from it
    raw: bytes
    crossings: bytes = b""  # the number of each row's crossing; empty: every call has its own


def call_columns(
    calls: np.ndarray, variants: np.ndarray, *, unit_ns: int = 1, base_ns: int | None = None
) -> CallColumns:
    """Pack `calls` into columns.

    Args:
        calls: rows of a recording or of a recorder's log.
        variants: the variant of each index in the column ``lowered``.
        unit_ns: times are rounded down to multiples of this; a larger unit is used if they would
            not fit.
        base_ns: the time that the first start counts from; by default the first start.
    """
    calls = _by_start(calls)
    starts, ends = calls["start_ns"], calls["end_ns"]
    if base_ns is None:
        base_ns = int(starts[0]) if len(calls) else 0
    widest = max(_largest(ends - starts), _largest(np.diff(starts, prepend=base_ns)))
    unit_ns = max(unit_ns, -(-widest // _LARGEST))
    # Rounded before subtracting, so that rounding errors do not add up.
    places = np.maximum(starts - base_ns, 0) // unit_ns
    columns = (
        np.diff(places, prepend=0).astype("<u4"),
        (np.maximum(ends - starts, 0) // unit_ns).astype("<u4"),
        calls["element"].astype("<i4"),
        _narrow(variants[calls["lowered"]]),
        _narrow(calls["thread"]),
        _narrow(calls["error"]),
    )
    looped = bool((calls["element"] >= 0).any())
    crossings = calls["crossing"].astype("<u4").tobytes() if looped else b""
    raw = b"".join(column.tobytes() for column in columns)
    return CallColumns(len(calls), unit_ns, base_ns, raw, crossings)


def to_saved(columns: CallColumns) -> SavedCallsView:
    """Return the columns as JSON: compressed byte planes, a third of the size of plain columns."""
    saved: SavedCallsView = {
        "rows": columns.rows,
        "unit_ns": columns.unit_ns,
        "zlib": _compressed(columns.raw, columns.rows, (4, 4, 4, 2, 2, 2)),
    }
    if columns.crossings:
        saved["crossings"] = _compressed(columns.crossings, columns.rows, (4,))
    return saved


def _compressed(raw: bytes, rows: int, widths: Sequence[int]) -> str:
    planes, offset = [], 0
    for width in widths:
        column = np.frombuffer(raw, np.uint8, width * rows, offset)
        planes.append(column.reshape(rows, width).T.tobytes())
        offset += width * rows
    return base64.b64encode(zlib.compress(b"".join(planes), 6)).decode()


def variant_numbers(recording: Recording, sites: Iterable[SiteSummary]) -> np.ndarray:
    """Return, for each of `recording.lowered`, its index among all variants of `sites`."""
    numbers = np.full(len(recording.lowered), OUT_OF_RANGE, np.int64)
    for variant, shapes in enumerate(shapes for summary in sites for shapes in summary.shapes):
        numbers[list(shapes.lowered)] = variant
    return numbers


def rows_of(
    calls: np.ndarray, facts: Sequence[SampleValues] | Sequence[NotFiniteCall]
) -> list[int]:
    """Return the row of each call among `calls` sorted by start; -1 if it has none."""
    if not facts:
        return []
    calls = _by_start(calls)
    wanted = np.isin(calls["crossing"], [one.crossing for one in facts])
    wanted &= np.isin(calls["element"], [one.element for one in facts])
    rows = np.flatnonzero(wanted)
    found = zip(calls["crossing"][rows].tolist(), calls["element"][rows].tolist(), strict=True)
    place = dict(zip(found, rows.tolist(), strict=True))
    return [place.get((one.crossing, one.element), -1) for one in facts]


def not_finite_marks(recording: Recording, calls: np.ndarray, most: int) -> dict[Site, Marks]:
    """Return which of `calls`, sorted by start, returned NaN or infinity, by site.

    Args:
        recording: the recording of the calls.
        calls: the calls that the document has.
        most: the number of runs of such calls that are kept, for each site.
    """
    found: dict[Site, tuple[dict[int, int], dict[int, int]]] = {}  # elements by row
    facts = recording.not_finite_calls
    for row, one in zip(rows_of(calls, facts), facts, strict=True):
        own = found.setdefault(recording.lowered[one.lowered].site, ({}, {}))
        if row >= 0:
            own[one.passed_on][row] = one.element
    return {
        site: Marks(_runs(made, most), _runs(passed, most), made[min(made)] if made else -1)
        for site, (made, passed) in found.items()
    }


def _runs(rows: Iterable[int], most: int) -> tuple[int, ...]:
    """Return how many rows to skip, how many follow, how many to skip, ..."""
    place = np.sort(np.fromiter(rows, np.int64))
    if not len(place):
        return ()
    breaks = np.flatnonzero(np.diff(place) > 1)
    first = place[np.concatenate([[0], breaks + 1])][:most]
    after = place[np.append(breaks, len(place) - 1)][:most] + 1
    skipped = first - np.concatenate([[0], after[:-1]])
    return tuple(np.stack([skipped, after - first], axis=1).ravel().tolist())


def _by_start(calls: np.ndarray) -> np.ndarray:
    starts = calls["start_ns"]
    in_order = bool((starts[1:] >= starts[:-1]).all())  # copying a million calls takes 50 ms
    return calls if in_order else calls[np.argsort(starts, kind="stable")]


def _largest(column: np.ndarray) -> int:
    return max(int(column.max()), 0) if len(column) else 0


def _narrow(column: np.ndarray) -> np.ndarray:
    return np.minimum(column, OUT_OF_RANGE).astype("<u2")
