"""Send the output of a host function to the cell that ran its program, even after it has ended.

ipykernel looks up the cell that output belongs to in the context of the thread. XLA's threads have
no context, so their output goes to the running cell, which is wrong if an earlier cell dispatched
the program. This module replaces the lookup, which costs nothing in a host call without output.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...capabilities import Unfinished, queue
from ...stack import on_thread_of_xla
from ._replaced import Replaced

_CONTEXT = "_parent_header"  # of ipykernel's streams and, since 7, its publisher of displays


class _EarlierCell:
    """A cell that has ended, with host calls that may still be running."""

    def __init__(self, header: dict[str, Any], number: int, in_flight: Unfinished) -> None:
        self.header, self.number, self.in_flight = header, number, in_flight
        self.marked = False  # "late" was printed


class OutputRouting:
    """Replaces ipykernel's lookup of the cell; does nothing without a kernel of a known version.

    Args:
        shell: IPython's shell.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._earlier: list[_EarlierCell] = []
        self._replaced = Replaced()
        self._lock = threading.Lock()

    def open(self) -> None:
        """Replace the lookup."""
        if getattr(self._shell, "kernel", None) is None:
            return
        publisher: Any = self._shell.display_pub
        for owner in (sys.stdout, sys.stderr, publisher):
            variable = getattr(owner, _CONTEXT, None)
            if hasattr(variable, "get"):
                self._replaced.replace(owner, _CONTEXT, _RoutedContext(variable, self))
        if hasattr(publisher, _CONTEXT):
            return
        publish = publisher.publish  # of ipykernel 6

        def publish_in_its_cell(*args: Any, **kwargs: Any) -> Any:
            header = self.header()
            if header is None:
                return publish(*args, **kwargs)
            with self._lock:  # all threads use the same header
                running, publisher.parent_header = publisher.parent_header, header
                try:
                    return publish(*args, **kwargs)
                finally:
                    publisher.parent_header = running

        self._replaced.replace(publisher, "publish", publish_in_its_cell)

    def close(self) -> None:
        """Restore the original lookup."""
        self._replaced.restore()
        self._earlier.clear()

    def cell_over(self, in_flight: Unfinished, number: int) -> None:
        """End the running cell, whose host calls in `in_flight` may still be running."""
        header = getattr(self._shell.display_pub, "parent_header", None)
        with self._lock:
            self._earlier = [cell for cell in self._earlier if not cell.in_flight.is_done()]
            if self._replaced and header and not in_flight.is_done():
                in_flight.forget_finished()
                in_flight.end()
                self._earlier.append(_EarlierCell(header, number, in_flight))

    def header(self) -> dict[str, Any] | None:
        """Return the header of the earlier cell that this thread's host call belongs to.

        None if it belongs to the running cell.
        """
        if not self._earlier:
            return None
        with self._lock:
            cell = None
            if queue.is_own_thread():
                delivering = (it for it in self._earlier if it.in_flight.is_delivering())
                cell = next(delivering, None)
            elif on_thread_of_xla():  # the first programs in flight are those of a cell that ended
                while self._earlier and self._earlier[0].in_flight.is_done(patience=True):
                    del self._earlier[0]
                cell = self._earlier[0] if self._earlier else None
            if cell is None:
                return None
            marked, cell.marked = cell.marked, True
        if not marked:
            print(f"[late: host call of In [{cell.number}]]", flush=True)
        return cell.header


class _RoutedContext:
    """Replaces the context variable in which ipykernel looks up the cell."""

    def __init__(self, variable: Any, routing: OutputRouting) -> None:
        self._variable = variable
        self._routing = routing

    def get(self, *default: Any) -> Any:
        # Queued calls have the context of their cell, whose output may be late.
        header = self._routing.header() if queue.is_own_thread() else None
        if header is not None:
            return header
        try:
            return self._variable.get()
        except LookupError:
            header = self._routing.header()
            return self._variable.get(*default) if header is None else header

    def __getattr__(self, name: str) -> Any:  # set, reset, name
        return getattr(self._variable, name)
