"""Which notebook cell a line of code stands in."""

from __future__ import annotations

import zlib
from typing import Any

from IPython.core.interactiveshell import InteractiveShell


class Origins:
    """The cells that have run, by the file names they were compiled under.

    Attributes:
        running: the id of the cell that runs; None where the front end does not say.
        cells: the front end's id of the cell by file name; of a cell that was changed and run
            again, the file names of both.
        digests: CRC-32 of the source of each cell, in UTF-8, as it was when it ran last.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._latest: dict[str, set[str]] = {}  # file names of a cell's last run
        self._skipped: dict[str, int] = {}  # lines at the top that IPython compiles without
        self.running: str | None = None
        self.cells: dict[str, str] = {}
        self.digests: dict[str, int] = {}

    def begin(self, info: Any) -> None:
        """A cell begins; `info` is what IPython says of it."""
        cell = getattr(info, "cell_id", None)
        self.running = cell
        if cell is not None:
            self.digests[cell] = zlib.crc32(info.raw_cell.encode())
            self._latest[cell] = set()
            # The kernel names a file by the cell's text as it was typed.
            file = self._shell.compile.get_code_name(info.raw_cell, info.raw_cell, 0)
            self.add(file)
            self._skipped[file] = blank_lines(info.raw_cell)

    def add(self, file: str) -> None:
        """The running cell compiled something under the name `file`."""
        if self.running is not None:
            self.cells[file] = self.running
            self._latest[self.running].add(file)

    def place(self, file: str, line: int) -> tuple[str | None, int]:
        """The cell of a line of `file`, None if it is none, and the line of its text as typed."""
        return self.cells.get(file), line + self._skipped.get(file, 0)

    def is_current(self, file: str) -> bool:
        """Whether `file` is no cell, or as that cell was when it ran last."""
        cell = self.cells.get(file)
        return cell is None or file in self._latest[cell]


def blank_lines(source: str) -> int:
    """How many lines at the top IPython leaves away before it counts."""
    text = source.lstrip()
    return source[: len(source) - len(text)].count("\n") if text else 0
