"""Name the cells of errors of host functions, also if they are shown in a later cell."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...stack import add_note, failed_while, set_running_reporter


class LateErrors:
    """While installed, names the cell that ran when a host call failed."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._cell = ""

    def install(self) -> None:
        """Register for the beginning of cells."""
        self._cell = self._named(running=True)
        self._shell.events.register("pre_run_cell", self._begins)
        set_running_reporter(self._running)

    def remove(self) -> None:
        """Undo `install`."""
        self._shell.events.unregister("pre_run_cell", self._begins)
        set_running_reporter(None)

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

    def _running(self) -> str:
        return self._cell
