"""Communicate with JupyterLab's side panel and badges."""

from __future__ import annotations

import io
import uuid
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import comm
from IPython.core.interactiveshell import InteractiveShell

from ...recording import FORMATS, Recording
from ...report import SCHEMA, Place, RunsView, SnapshotView, to_message

NAME = "jupyter_jaxcb"  # of the comm target, and of the only comm
_VERSION = version("jupyter_jaxcb")
_KEPT = 8  # recordings that a view can request


class Link:
    """Sends complete snapshots, so that a page that is loaded late misses nothing.

    The comm has a fixed name and is never opened: front ends without the extension ignore it, and
    the extension need not wait for a busy kernel.

    Args:
        shell: IPython's shell. Nothing is sent from a terminal or from an ipyparallel engine, whose
            client would take the comm for its own.
        snapshot: returns the state to send.
        place: see `to_message`.
        runs: returns the runs of a cell up to that of a recording, see `History`.
    """

    def __init__(
        self,
        shell: InteractiveShell,
        snapshot: Callable[[], SnapshotView],
        place: Place,
        runs: Callable[[str], RunsView | None],
    ) -> None:
        kernel = getattr(shell, "kernel", None)
        self._has_page = kernel is not None and not hasattr(kernel, "engine_id")
        self._snapshot = snapshot
        self._place = place
        self._runs = runs
        self._comm: Any = None
        self._sent: SnapshotView | None = None
        self._recordings: dict[str, Recording] = {}

    def open(self) -> None:
        """Open the comm and send the state."""
        if self._has_page:
            self._comm = comm.create_comm(target_name=NAME, comm_id=NAME, primary=False)
            self._comm.on_msg(self._receive)
            comm.get_comm_manager().register_comm(self._comm)
            self.push()

    def close(self) -> None:
        """Report that the extension is unloaded, and close the comm."""
        if self._comm is not None:
            self._send({"type": "unloaded"})
            comm.get_comm_manager().unregister_comm(self._comm)
            self._comm = None

    def push(self) -> None:
        """Send the state if it has changed."""
        if self._comm is not None:
            snapshot = self._snapshot()
            if snapshot != self._sent:
                self._send_snapshot(snapshot)

    def repeat(self) -> None:
        """Send the state again, for a page that may have been loaded since."""
        if self._comm is not None:
            self._send_snapshot(self._snapshot())

    def keep(self, recording: Recording) -> str:
        """Keep `recording` for its views; return the id by which they request it."""
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

    def _send_snapshot(self, snapshot: SnapshotView) -> None:
        self._sent = snapshot
        self._send({"type": "snapshot", "version": _VERSION, **snapshot})

    def _send(self, data: dict[str, Any], buffers: list[bytes] | None = None) -> None:
        self._comm.send({"schema": SCHEMA, **data}, buffers=buffers or [])

    def _receive(self, message: dict[str, Any]) -> None:
        """Handle a request, on any thread; another version of the front end may send anything."""
        request = message["content"].get("data") or {}
        if request.get("type") == "hello":
            self.repeat()
        elif request.get("type") == "recording":
            name = str(request.get("id"))
            recording = self._recordings.get(name)
            reply: dict[str, Any] = {"type": "recording", "id": name, "facts": None}
            reply["runs"] = self._runs(name)
            if recording is None:
                self._send(reply)
                return
            facts, measured, calls = to_message(recording, place=self._place, name=name)
            reply |= {"facts": facts, "measured": measured}
            reply |= {"rows": calls.rows, "unit_ns": calls.unit_ns}
            self._send(reply, [calls.raw, calls.crossings])
        elif request.get("type") == "file":
            name, suffix, written = str(request.get("id")), str(request.get("suffix")), []
            try:
                written = [self._file(name, suffix)]
            finally:  # the page waits for a reply
                self._send({"type": "file", "id": name, "suffix": suffix}, written)

    def _file(self, name: str, suffix: str) -> bytes:
        """Return what `Recording.save` writes for a suffix; empty if the recording is gone."""
        recording, file = self._recordings.get(name), io.BytesIO()
        if recording is not None and suffix in FORMATS:
            FORMATS[suffix](recording, file)
        return file.getvalue()
