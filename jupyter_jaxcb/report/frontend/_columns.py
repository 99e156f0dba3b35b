"""Pack host calls into columns of bytes for the front end.

Little-endian, one column after the other: start (u32, since the previous row), duration (u32),
element (i32), variant, thread, error (u16 each); times in units of `CallColumns.unit_ns`. A variant
is an index into the `Shapes` of all sites, concatenated in order.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...recording import Recording, SampleValues
from ..summary import SiteSummary

OUT_OF_RANGE = 0xFFFF  # a variant, thread or error whose number does not fit into 16 bits
_LARGEST = 0xFFFF_FFFF


class CallColumns(NamedTuple):
    """Packed host calls, sorted by start."""

    rows: int
    unit_ns: int  # of the times; at least the requested unit
    base_ns: int  # of the recorder's clock; the first start counts from it
    raw: bytes


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
    return CallColumns(
        len(calls), unit_ns, base_ns, b"".join(column.tobytes() for column in columns)
    )


def to_saved(columns: CallColumns) -> dict[str, int | str]:
    """Return the columns as JSON: compressed byte planes, a third of the size of plain columns."""
    planes, offset = [], 0
    for width in (4, 4, 4, 2, 2, 2):
        size = width * columns.rows
        column = np.frombuffer(columns.raw, np.uint8, size, offset)
        planes.append(column.reshape(columns.rows, width).T.tobytes())
        offset += size
    text = base64.b64encode(zlib.compress(b"".join(planes), 6)).decode()
    return {"rows": columns.rows, "unit_ns": columns.unit_ns, "zlib": text}


def variant_numbers(recording: Recording, sites: Iterable[SiteSummary]) -> np.ndarray:
    """Return, for each of `recording.lowered`, its index among all variants of `sites`."""
    numbers = np.full(len(recording.lowered), OUT_OF_RANGE, np.int64)
    for variant, shapes in enumerate(shapes for summary in sites for shapes in summary.shapes):
        numbers[list(shapes.lowered)] = variant
    return numbers


def sample_rows(calls: np.ndarray, sample_values: Sequence[SampleValues]) -> list[int]:
    """Return the row of each sample among `calls` sorted by start; -1 if it has none."""
    calls = _by_start(calls)
    wanted = np.isin(calls["crossing"], [sample.crossing for sample in sample_values])
    wanted &= np.isin(calls["element"], [sample.element for sample in sample_values])
    rows = np.flatnonzero(wanted)
    found = zip(calls["crossing"][rows].tolist(), calls["element"][rows].tolist(), strict=True)
    place = dict(zip(found, rows.tolist(), strict=True))
    return [place.get((sample.crossing, sample.element), -1) for sample in sample_values]


def _by_start(calls: np.ndarray) -> np.ndarray:
    starts = calls["start_ns"]
    in_order = bool((starts[1:] >= starts[:-1]).all())  # copying a million calls takes 50 ms
    return calls if in_order else calls[np.argsort(starts, kind="stable")]


def _largest(column: np.ndarray) -> int:
    return max(int(column.max()), 0) if len(column) else 0


def _narrow(column: np.ndarray) -> np.ndarray:
    return np.minimum(column, OUT_OF_RANGE).astype("<u2")
