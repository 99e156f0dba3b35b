"""Spans of time, and how a stretch of time is divided among those that overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

# What happened from start to end: a row of the one table that all sources fill.
SPAN = np.dtype([("start", "<i8"), ("end", "<i8"), ("part", "<i8"), ("lane", "<i8")])
NONE = -1  # no part, no lane
_LONG = 1000  # segments; longer spans are painted one by one

Division = tuple[np.ndarray, np.ndarray]  # edges, and the part of each segment between two of them


def spans(starts, ends, parts, lanes) -> np.ndarray:
    """Return a table of spans from its columns, some of which may be one number for all rows."""
    table = np.empty(np.broadcast(starts, ends, parts, lanes).shape, SPAN)
    for name, column in zip(SPAN.names or (), (starts, ends, parts, lanes), strict=True):
        table[name] = column
    return table


def divide(
    start: int, end: int, table: np.ndarray, ranks: np.ndarray, cuts: Sequence[int] = ()
) -> Division:
    """Divide the time from `start` to `end`: each instant belongs to one part, or to `NONE`.

    Of the spans at an instant, that of the highest rank has it, and among equals the shortest: of
    nested ones, the innermost.

    Args:
        start: the beginning.
        end: the end.
        table: the spans. One without a part leaves its time to nobody.
        ranks: of each part; the last one is that of `NONE`.
        cuts: more times at which a segment ends.
    """
    starts, ends = np.maximum(table["start"], start), np.minimum(table["end"], end)
    starts, ends, parts = (column[ends > starts] for column in (starts, ends, table["part"]))
    inner = [cut for cut in cuts if start < cut < end]
    edges = np.sort(np.concatenate([[start, end], inner, starts, ends]).astype(np.int64))
    edges = edges[np.diff(edges, prepend=edges[0] - 1) > 0]  # `np.unique` hashes: it is slower
    # In this order, the span that has an instant is the last one there.
    order = np.lexsort((starts - ends, ranks[parts]))
    first, last, parts = (
        column[order]  # to look up sorted times is faster
        for column in (np.searchsorted(edges, starts), np.searchsorted(edges, ends), parts)
    )
    winners = np.full(len(edges) - 1, NONE, np.int64)
    counts, number = last - first, np.arange(len(parts))
    short = counts <= _LONG
    # The numbers of all segments of all short spans: of equal ones, NumPy stores the last.
    begins = np.cumsum(counts[short]) - counts[short]
    segments = np.repeat(first[short] - begins, counts[short]) + np.arange(counts[short].sum())
    winners[segments] = np.repeat(number[short], counts[short])
    for begin, stop, which in zip(first[~short], last[~short], number[~short], strict=True):
        np.maximum(winners[begin:stop], which, out=winners[begin:stop])
    return edges, np.append(parts, NONE)[winners]


def drawn(division: Division, pieces: int) -> tuple[int, ...]:
    """Return start, duration and part of the longest spans, at most `pieces` of them, flat.

    The time is cut into equal pieces, each of which goes to the part that has most of it. Times are
    counted from the first edge. Pieces that mostly belong to nobody are left out.
    """
    edges, owners = division
    if len(edges) < 2:
        return ()
    cuts = np.unique(np.linspace(edges[0], edges[-1], pieces + 1).astype(np.int64))
    at = np.searchsorted(edges, cuts[1:-1], side="right")
    starts = np.insert(edges[:-1], at, cuts[1:-1])
    owners = np.insert(owners, at, owners[at - 1]) - NONE  # the first column is that of `NONE`
    piece = np.searchsorted(cuts, starts, side="right") - 1
    shape = len(cuts) - 1, int(owners.max()) + 1
    times = np.bincount(
        piece * shape[1] + owners, np.diff(starts, append=edges[-1]), shape[0] * shape[1]
    )
    most = times.reshape(shape).argmax(axis=1) + NONE
    changes = np.flatnonzero(np.diff(most, prepend=most[0] - 1))
    rows = np.column_stack(
        [cuts[changes] - cuts[0], np.diff(cuts[[*changes, len(most)]]), most[changes]]
    )
    return tuple(rows[most[changes] != NONE].ravel().tolist())
