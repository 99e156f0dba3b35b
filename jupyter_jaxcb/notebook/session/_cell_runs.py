"""Tell the stack which cell runs: a cell that runs again swaps the functions it registers."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...stack import Run, cell_begins, cell_ends


class CellRuns:
    """The cells of one shell that are running: `run_cell` nests."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._running: dict[int, tuple[Any, Run]] = {}  # by id of the info, which is kept alive

    def open(self) -> None:
        """Begin the cell that loads the extension, which is already running."""
        get_parent = getattr(self._shell, "get_parent", dict)  # a terminal has no messages
        self._begin(None, get_parent().get("metadata", {}).get("cellId"))

    def begin(self, info: Any) -> None:
        """Begin a cell; `info` is IPython's information about it.

        JupyterLab and Notebook 7 send the id of a cell; nbclient, nbval and a terminal do not.
        """
        self._begin(info, getattr(info, "cell_id", None))

    def _begin(self, info: Any, cell: str | None) -> None:
        run = cell_begins(self._shell.user_ns, None if cell is None else ("cell", cell))
        self._running[id(info)] = (info, run)

    def end(self, info: Any) -> None:
        """End the cell of `info`; a blank cell has not begun."""
        _, run = self._running.pop(id(info), (None, None))
        if run is not None:
            cell_ends(run)

    def close(self) -> None:
        """End all cells."""
        for info, _ in list(self._running.values()):
            self.end(info)
