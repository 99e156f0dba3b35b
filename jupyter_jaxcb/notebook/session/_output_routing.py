"""What a host function puts out appears in the cell that ran its program, also when that is over.

ipykernel asks the context of the thread which cell output belongs to. Threads of XLA's have none,
and their output goes to the cell that runs now, which is right unless their program was dispatched
by a cell before it. Nothing is done in a host call: who asks is answered.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...stack import InFlight, on_thread_of_xla

_CONTEXT = "_parent_header"  # of ipykernel's streams and, since 7, its publisher of displays


class _Late:
    """A cell that is over, with host calls that may still come."""

    def __init__(self, header: dict[str, Any], number: int, in_flight: InFlight) -> None:
        self.header = header
        self.number = number
        self.in_flight = in_flight
        self.told = False


class Routes:
    """Answers ipykernel; does nothing where there is no kernel, or not one we know.

    Args:
        shell: IPython's.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._late: list[_Late] = []
        self._replaced: list[tuple[Any, str, Any]] = []  # object, attribute, what it was
        self._lock = threading.Lock()

    def open(self) -> None:
        """Takes the place of what is asked."""
        if getattr(self._shell, "kernel", None) is None:
            return
        publisher: Any = self._shell.display_pub
        for asked in (sys.stdout, sys.stderr, publisher):
            if hasattr(getattr(asked, _CONTEXT, None), "get"):
                self._replace(asked, _CONTEXT, _Answer(getattr(asked, _CONTEXT), self))
        if not hasattr(publisher, _CONTEXT):  # ipykernel 6
            self._replace(publisher, "publish", self._publishing(publisher, publisher.publish))

    def close(self) -> None:
        """Puts back what was there."""
        for asked, name, before in self._replaced:
            if name in vars(type(asked)):  # a method: ours stands before it
                vars(asked).pop(name, None)
            else:
                setattr(asked, name, before)
        self._replaced.clear()
        self._late.clear()

    def cell_over(self, in_flight: InFlight, number: int) -> None:
        """The running cell ends, whatever of it is still `in_flight`."""
        header = getattr(self._shell.display_pub, "parent_header", None)
        with self._lock:
            self._late = [late for late in self._late if not late.in_flight.is_done()]
            if self._replaced and header and not in_flight.is_done():
                in_flight.forget_finished()
                self._late.append(_Late(header, number, in_flight))

    def header(self) -> dict[str, Any] | None:
        """Of the earlier cell whose host call asks; None: it is none."""
        if not self._late or not on_thread_of_xla():
            return None
        with self._lock:
            while self._late and self._late[0].in_flight.is_done(patience=True):
                del self._late[0]
            if not self._late:
                return None
            late = self._late[0]
            told, late.told = late.told, True
        if not told:
            print(f"[late: host call of In [{late.number}]]", flush=True)
        return late.header

    def _replace(self, asked: Any, name: str, answer: Any) -> None:
        self._replaced.append((asked, name, getattr(asked, name)))
        setattr(asked, name, answer)

    def _publishing(self, publisher: Any, publish: Any) -> Any:
        def to_its_cell(*args: Any, **kwargs: Any) -> Any:
            header = self.header()
            if header is None:
                return publish(*args, **kwargs)
            with self._lock:  # there is one header for all threads
                running, publisher.parent_header = publisher.parent_header, header
                try:
                    return publish(*args, **kwargs)
                finally:
                    publisher.parent_header = running

        return to_its_cell


class _Answer:
    """Stands for the context variable that ipykernel asks."""

    def __init__(self, variable: Any, routes: Routes) -> None:
        self._variable = variable
        self._routes = routes

    def get(self, *default: Any) -> Any:
        try:
            return self._variable.get()
        except LookupError:
            header = self._routes.header()
            return self._variable.get(*default) if header is None else header

    def __getattr__(self, name: str) -> Any:  # set, reset, name
        return getattr(self._variable, name)
