"""Tell the stack which cell runs: a cell that runs again swaps the functions it registers."""

from __future__ import annotations

from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...stack import Run, cell_begins, cell_ends


class CellRuns:
    """The cells of one shell that are running: `run_cell` nests."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._running: dict[int, tuple[Any, Run]] = {}  # by the identity of the info, which is kept

    def open(self) -> None:
        """The cell that loads the extension is running already."""
        get_parent = getattr(self._shell, "get_parent", dict)  # a terminal has no messages
        self._begin(None, get_parent().get("metadata", {}).get("cellId"))

    def begin(self, info: Any) -> None:
        """A cell begins; `info` is what IPython says of it.

        JupyterLab and Notebook 7 send the id of a cell; nbclient, nbval and a terminal do not.
        """
        self._begin(info, getattr(info, "cell_id", None))

    def _begin(self, info: Any, cell: str | None) -> None:
        run = cell_begins(self._shell.user_ns, None if cell is None else ("cell", cell))
        self._running[id(info)] = (info, run)

    def end(self, info: Any) -> None:
        """The cell of `info` ends; a blank one has not begun."""
        _, run = self._running.pop(id(info), (None, None))
        if run is not None:
            cell_ends(run)

    def close(self) -> None:
        """No cell runs, as far as the stack knows."""
        for info, _ in list(self._running.values()):
            self.end(info)
