"""The line to JupyterLab's side panel and badges."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import comm
from IPython.core.interactiveshell import InteractiveShell

from ...recording import Recording
from ...report import Place, to_message

NAME = "jupyter_jaxcb"  # of the target, and of the one comm
PROTOCOL = 1
_VERSION = version("jupyter_jaxcb")
_KEPT = 8  # recordings that a view can still ask for


class Link:
    """Sends whole snapshots, so that a page that comes late misses nothing.

    The comm has a fixed name and is never opened: a front end that does not know us hears of
    nothing, and one that does needs no answer from a kernel that is busy.

    Args:
        shell: IPython's; nothing is sent where it is not a kernel's, or that of an engine of
            ipyparallel's, whose client would take our comm for its own.
        snapshot: what there is to tell.
        place: see `to_message`.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        snapshot: Callable[[], dict[str, Any]],
        place: Place,
    ) -> None:
        kernel = getattr(shell, "kernel", None)
        self._has_page = kernel is not None and not hasattr(kernel, "engine_id")
        self._snapshot = snapshot
        self._place = place
        self._comm: Any = None
        self._told: dict[str, Any] | None = None
        self._recordings: dict[str, Recording] = {}

    def open(self) -> None:
        """Listens, and tells what there is."""
        if self._has_page:
            self._comm = comm.create_comm(target_name=NAME, comm_id=NAME, primary=False)
            self._comm.on_msg(self._answer)
            comm.get_comm_manager().register_comm(self._comm)
            self.push()

    def close(self) -> None:
        """Tells that there is nothing any more."""
        if self._comm is not None:
            self._send({"type": "unloaded"})
            comm.get_comm_manager().unregister_comm(self._comm)
            self._comm = None

    def push(self) -> None:
        """Tells what there is now, if it is not what was told last."""
        if self._comm is not None:
            snapshot = self._snapshot()
            if snapshot != self._told:
                self._tell(snapshot)

    def repeat(self) -> None:
        """Tells it again, to a page that may have been loaded since."""
        if self._comm is not None:
            self._tell(self._snapshot())

    def keep(self, recording: Recording) -> str:
        """Keeps `recording` for the views of it; returns the name they ask by."""
        if self._comm is None:
            return ""
        for name, known in self._recordings.items():
            if known is recording:
                return name
        name = uuid.uuid4().hex
        self._recordings[name] = recording
        while len(self._recordings) > _KEPT:
            self._recordings.pop(next(iter(self._recordings)))
        return name

    def _tell(self, snapshot: dict[str, Any]) -> None:
        self._told = snapshot
        self._send({"type": "snapshot", "version": _VERSION, **snapshot})

    def _send(self, data: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        self._comm.send({"protocol": PROTOCOL, **data}, buffers=buffers or [])

    def _answer(self, message: dict[str, Any]) -> None:
        """May come on a thread of the kernel's own; of another version, anything may come."""
        asked = message["content"].get("data") or {}
        if asked.get("type") == "hello":
            self.repeat()
        elif asked.get("type") == "recording":
            name = str(asked.get("id"))
            recording = self._recordings.get(name)
            answer: dict[str, Any] = {"type": "recording", "id": name, "facts": None}
            if recording is None:
                self._send(answer)
                return
            facts, measured, calls = to_message(recording, place=self._place)
            answer |= {"facts": facts, "measured": measured}
            answer |= {"rows": calls.rows, "unit_ns": calls.unit_ns}
            self._send(answer, [calls.raw])
