"""Write host calls as CSV, one row per call."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any, BinaryIO

import numpy as np

from ...recording import FACTS, Recording, call_table, spreadsheet_cell

_ROWS = 1 << 16  # formatted at a time


def write_csv(recording: Recording, file: BinaryIO) -> None:
    """Write the columns of `Recording.to_pandas`; missing values are empty.

    Text that a spreadsheet would read as a formula gets a leading apostrophe.
    """
    table = call_table(recording)
    # Columns that are equal for all calls of one site and program are formatted once.
    facts = _cells(table, FACTS, recording)
    named = {name: column for name, column in table.items() if isinstance(column, tuple)}
    # The last of the words is for -1.
    words = {
        name: [*(_row([word]) for word in column[1]), ""]
        for name, column in named.items()
        if name not in FACTS
    }
    numbers = [name for name in table if name not in named]
    _write(file, f"{_row(table)}\n")
    row = ",".join(["%d"] * len(numbers) + ["%s"] * (len(words) + 1)) + "\n"
    for start in range(0, len(recording.calls), _ROWS):
        here = slice(start, start + _ROWS)
        columns: list[Any] = [np.asarray(table[name])[here].tolist() for name in numbers]
        for name, spelled in words.items():
            columns.append([spelled[code] for code in named[name][0][here].tolist()])
        columns.append([facts[n] for n in recording.calls["lowered"][here].tolist()])
        _write(file, "".join(map(row.__mod__, zip(*columns, strict=True))))


def _cells(table: Any, names: Iterable[str], recording: Recording) -> list[str]:
    """Return the joined cells of each of `recording.lowered`; empty if it made no call."""
    used, first = np.unique(recording.calls["lowered"], return_index=True)
    cells = [""] * len(recording.lowered)
    for number, row in zip(used.tolist(), first.tolist(), strict=True):
        columns = [table[name] for name in names]
        cells[number] = _row(
            words[codes[row]] if codes[row] >= 0 else "" for codes, words in columns
        )
    return cells


def _row(cells: Iterable[Any]) -> str:
    text = io.StringIO()
    # Python 3.11 quotes only those line ends that occur in the terminator.
    csv.writer(text, lineterminator="\r\n").writerow(map(spreadsheet_cell, cells))
    return text.getvalue()[:-2]


def _write(file: BinaryIO, text: str) -> None:
    file.write(text.encode())
