"""Find the notebook cell that a line of code is in."""

from __future__ import annotations

import re
import zlib
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...recording import Frame, Site, numbered
from ...report import Located


class Origins:
    """The cells that have run, by the file names they were compiled under.

    Attributes:
        running: the id of the running cell; None if the front end does not send it.
        cells: the front end's cell id by file name. A cell that was changed and run again has
            several file names.
        numbers: the number of each cell's last run, by file name, also of cells without an id.
        digests: CRC-32 of the source of each cell, in UTF-8, at its last run.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        # The file names of a cell's last run; None: of the last cell that has no id.
        self._latest: dict[str | None, set[str]] = {None: set()}
        self._skipped: dict[str, int] = {}  # leading lines that IPython drops
        self.running: str | None = None
        self.cells: dict[str, str] = {}
        self.numbers: dict[str, int] = {}
        self.digests: dict[str, int] = {}

    def begin(self, info: Any) -> None:
        """Begin a cell; `info` is IPython's information about it."""
        cell = getattr(info, "cell_id", None)
        self.running = cell
        self._latest[cell] = set()
        # The kernel derives the file name from the untransformed source.
        file = self._shell.compile.get_code_name(info.raw_cell, info.raw_cell, 0)
        self.add(file)
        if cell is not None:
            self.digests[cell] = zlib.crc32(info.raw_cell.encode())
            self._skipped[file] = blank_lines(info.raw_cell)

    def add(self, file: str) -> None:
        """Note that the running cell has compiled code under the name `file`."""
        self._latest[self.running].add(file)
        if self.running is not None:
            self.cells[file] = self.running

    def place(self, file: str, line: int) -> Located:
        """Return the cell of `file`, and the line in the cell's full source."""
        return Located(
            self.cells.get(file), line + self._skipped.get(file, 0), self.numbers.get(file, 0)
        )

    def where(self, place: Site | Frame) -> str:
        """Name a place: ``line 3`` in the running cell, ``[21] line 3``, ``model.py:12``."""
        here = self.is_running(place.file)
        return numbered(place, 0 if here else self.numbers.get(place.file, 0))

    def number(self, file: str) -> int:
        """Return the number of the cell `file`, also of the running one; 0: unknown."""
        if file in self.numbers and not self.is_running(file):
            return self.numbers[file]
        named = self._shell.compile.format_code_name(file)  # "Cell", "In[3]", as in tracebacks
        if named is None:
            return 0
        # IPython does not number the body of a magic in a cell that it does not keep, as in nbval.
        return int(re.sub(r"\D", "", named[1]) or 0) or self._shell.execution_count

    def is_running(self, file: str) -> bool:
        """Whether the running cell was compiled under this name."""
        return file in self._latest[self.running]

    def is_current(self, file: str) -> bool:
        """Whether `file` is not a cell, or belongs to the cell's last run."""
        cell = self.cells.get(file)
        return cell is None or file in self._latest[cell]


def blank_lines(source: str) -> int:
    """Count the leading blank lines that IPython drops before it numbers lines."""
    text = source.lstrip()
    return source[: len(source) - len(text)].count("\n") if text else 0
