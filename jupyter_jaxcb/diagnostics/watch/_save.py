"""Write what a block saw to a file, in the format that the ending of its name selects."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...recording import element, spreadsheet_cell
from ..notes import History
from ._series import Row

Write = Callable[[Any, str], None]


def writer_of(path: str | os.PathLike[str]) -> Write:
    """Return the function that writes a `Watch` to `path`.

    Raises:
        ValueError: the ending is unknown; the message lists the known ones.
    """
    ending = os.path.splitext(path)[1].lower()
    if ending not in WRITERS:
        *others, last = WRITERS
        raise ValueError(
            f"cannot write values to {os.fspath(path)!r}. End its name in {', '.join(others)} or "
            f"{last}."
        )
    return WRITERS[ending]


def _csv(seen: Any, path: str) -> None:
    with open(path, "w", newline="", encoding="utf-8", errors="backslashreplace") as file:
        writer = csv.writer(file)
        columns = _columns(seen.rows)
        writer.writerow(map(spreadsheet_cell, columns))
        writer.writerows(map(spreadsheet_cell, row) for row in zip(*columns.values(), strict=True))


def _columns(rows: Sequence[Row]) -> dict[str, list]:
    """Return the fields by name, with one column for each number of the user."""
    table = {name: [getattr(row, name) for row in rows] for name in Row._fields if name != "own"}
    for name in dict.fromkeys(name for row in rows for name in row.own):
        table[f"own.{name}"] = [row.own.get(name) for row in rows]
    return table


def _perfetto(seen: Any, path: str) -> None:
    """Write a counter for the mean of each variable, and an event where a value is bad."""
    histories = [one for one in seen._store.histories() if one.facts.note.rows]
    begun = min((int(one.arrivals[0]) for one in histories), default=0)
    named = {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "values"}}
    events = [named, *(event for one in histories for event in _events(one, begun))]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"traceEvents": events}, file)


def _events(one: History, begun: int) -> Iterable[dict[str, Any]]:
    place = one.facts.note.place
    name = f"{one.facts.name} ({place.function}, line {place.line})"
    totals = one.numbers[..., :6].sum(axis=1).tolist()
    for arrival, (total, _, _, nan, inf, finite) in zip(one.arrivals.tolist(), totals, strict=True):
        at = {"name": name, "pid": 1, "tid": 1, "ts": (arrival - begun) / 1000}
        if nan or inf:
            counts = {"NaN": int(nan), "inf": int(inf)}
            yield at | {"ph": "i", "s": "t", "name": f"bad: {name}", "args": counts}
        elif finite and math.isfinite(total):
            yield at | {"ph": "C", "args": {"mean": total / finite}}


def _html(seen: Any, path: str) -> None:
    with open(path, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(
            "<!doctype html>"
            + element(
                "html",
                element("meta", charset="utf-8"),
                element("title", "values"),
                element("style", ":root{color-scheme:light dark}"),
                seen._repr_html_(),
                lang="en",
            )
        )


WRITERS: dict[str, Write] = {".csv": _csv, ".json": _perfetto, ".html": _html}
