"""Host calls as CSV, a row each."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from ...recording import FACTS, Named, Recording, call_table

_ROWS = 1 << 16  # that are text at once
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what begins so is one to a spreadsheet


def write_csv(recording: Recording, file: BinaryIO) -> None:
    """Writes the columns of `Recording.to_pandas`; what is missing is empty.

    A text that a spreadsheet would take for a formula has an apostrophe in front.
    """
    table = call_table(recording)
    # What is the same for all calls of one site and program is put into words once.
    facts = _cells(table, FACTS, recording)
    named = {name: column for name, column in table.items() if isinstance(column, Named)}
    words = {name: _spelled(column) for name, column in named.items() if name not in FACTS}
    numbers = [name for name in table if name not in named]
    _write(file, f"{_row(table)}\n")
    row = ",".join(["%d"] * len(numbers) + ["%s"] * (len(words) + 1)) + "\n"
    for start in range(0, len(recording.calls), _ROWS):
        here = slice(start, start + _ROWS)
        columns: list[Any] = [np.asarray(table[name])[here].tolist() for name in numbers]
        for name, spelled in words.items():
            columns.append([spelled[code] for code in named[name].codes[here].tolist()])
        columns.append([facts[n] for n in recording.calls["lowered"][here].tolist()])
        _write(file, "".join(map(row.__mod__, zip(*columns, strict=True))))


def _cells(table: Any, names: Iterable[str], recording: Recording) -> list[str]:
    """For each of `recording.lowered` its cells, joined; empty where it made no call."""
    used, first = np.unique(recording.calls["lowered"], return_index=True)
    cells = [""] * len(recording.lowered)
    for number, row in zip(used.tolist(), first.tolist(), strict=True):
        columns = [table[name] for name in names]
        cells[number] = _row(
            column.words[column.codes[row]] if column.codes[row] >= 0 else "" for column in columns
        )
    return cells


def _spelled(column: Named) -> list[str]:
    return [*(_row([word]) for word in column.words), ""]  # the last one for -1


def _row(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    # Python 3.11 quotes those ends of lines that are in the terminator, and no others.
    csv.writer(text, lineterminator="\r\n").writerow(map(_harmless, cells))
    return text.getvalue()[:-2]


def _harmless(cell: Any) -> Any:
    """A text that a spreadsheet would run as a formula, with an apostrophe in front."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULAS) else cell


def _write(file: BinaryIO, text: str) -> None:
    file.write(text.encode())
