"""Tell the stack which cell runs: a cell that runs again swaps the functions it registers."""

from __future__ import annotations

from typing import Any, NamedTuple

from IPython.core.interactiveshell import InteractiveShell

from ...stack import Run, cell_begins, cell_ends


class Loading(NamedTuple):
    """What IPython's information says about other cells, of the cell that loads the extension."""

    raw_cell: str
    cell_id: str | None

    @classmethod
    def in_shell(cls, shell: InteractiveShell) -> Loading:
        """Return the cell that `shell` is running; it began before there were hooks."""
        get_parent = getattr(shell, "get_parent", dict)  # a terminal has no messages
        message = get_parent()
        code = message.get("content", {}).get("code", "")
        return cls(code, message.get("metadata", {}).get("cellId"))


class CellRuns:
    """The cells of one shell that are running: `run_cell` nests."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._running: dict[int, tuple[Any, Run]] = {}  # by id of the info, which is kept alive

    def begin(self, info: Any) -> None:
        """Begin a cell; `info` is IPython's information about it.

        JupyterLab and Notebook 7 send the id of a cell; nbclient, nbval and a terminal do not.
        """
        cell = getattr(info, "cell_id", None)
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
