"""Name the cells of errors of host functions, also if they are shown in a later cell."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...stack import add_note, failed_while, set_cell_numbers, set_running_reporter


class LateErrors:
    """While installed, names the cell of a call site, and the one that ran when its call failed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._cell = ""

    def install(self) -> None:
        """Register for the beginning of cells."""
        self._cell = self._named(running=True)
        self._shell.events.register("pre_run_cell", self._begins)
        set_running_reporter(self._running)
        set_cell_numbers(self._number_of)

    def remove(self) -> None:
        """Undo `install`."""
        self._shell.events.unregister("pre_run_cell", self._begins)
        set_running_reporter(None)
        set_cell_numbers(None)

    def mark(self, error: BaseException) -> None:
        """Add a note to `error` that names its cell, unless that cell is still running."""
        cell = failed_while(error)
        if cell and cell != self._cell:
            add_note(error, f"late: a host call of {cell}")

    def _begins(self, info: Any) -> None:
        self._cell = self._named(running=False)

    def _named(self, *, running: bool) -> str:
        """Name the cell that is running, or that begins, by its number among all inputs.

        IPython increments `execution_count` before a cell begins or after it ends, by version.
        """
        inputs = len(getattr(self._shell.history_manager, "input_hist_raw", [""]))
        return f"In [{inputs - running}]"

    def _number_of(self, file: str) -> int:
        """Return 3 for the file name of the cell that IPython's tracebacks call ``In[3]``."""
        found = self._shell.compile.format_code_name(file)
        return int(found[1].strip("In[]")) if found is not None else 0

    def _running(self) -> str:
        return self._cell
