"""The front end as anywidget widgets."""

from __future__ import annotations

import importlib.resources
import threading
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ...recording import Recording
from ...report import CallColumns, to_message

CLOSE_SECONDS = 10
_STATIC = Path(str(importlib.resources.files("jupyter_jaxcb"))) / "static"


class LiveWidget(anywidget.AnyWidget):
    """The live view of a running cell.

    Host calls are sent as messages, which are not saved.
    """

    _esm = _STATIC / "widget.js"
    _css = _STATIC / "widget.css"
    kind = traitlets.Unicode("live").tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)
    threads = traitlets.List().tag(sync=True)
    hang = traitlets.Dict().tag(sync=True)  # empty: it goes on

    def __init__(self, **traits: Any) -> None:
        self._loaded = self._removed = False
        self._closed = threading.Lock()  # never released
        super().__init__(**traits)
        self.on_msg(self._note_loaded)

    def remove(self) -> None:
        """Close the widget when a page has loaded it, at the latest after 10 seconds.

        anywidget reports an error if a widget is closed while a page loads it.
        """
        self._removed = True
        if self._loaded:
            self._close_once()
            return
        closing = threading.Timer(CLOSE_SECONDS, self._close_once)
        closing.daemon = True
        closing.start()

    def _note_loaded(self, *_: Any) -> None:
        self._loaded = True
        if self._removed:
            self._close_once()

    def _close_once(self) -> None:
        if self._closed.acquire(blocking=False):
            self.close()

    def append(self, calls: CallColumns, since_first_ns: int) -> None:
        """Send host calls whose variants are indices of the sites in `progress`."""
        header = {"rows": calls.rows, "unit_ns": calls.unit_ns, "base_ns": since_first_ns}
        self.send(header, buffers=[calls.raw, calls.crossings])

    def __repr__(self) -> str:  # without an address, so that outputs are reproducible
        return "LiveWidget()"


class RecordingWidget(anywidget.AnyWidget):
    """A view of a whole recording.

    Args:
        recording: the recording to show.
        values: see `to_message`.
        saved: data and metadata for a notebook without a kernel, and for JupyterLab's renderer,
            which takes precedence over widgets and requests the rest from the kernel.
    """

    _esm = _STATIC / "widget.js"
    _css = _STATIC / "widget.css"
    kind = traitlets.Unicode("recording").tag(sync=True)
    facts = traitlets.Dict().tag(sync=True)
    measured = traitlets.Dict().tag(sync=True)
    rows = traitlets.Int().tag(sync=True)
    unit_ns = traitlets.Int().tag(sync=True)
    calls = traitlets.Bytes().tag(sync=True)
    crossings = traitlets.Bytes().tag(sync=True)

    def __init__(
        self,
        recording: Recording,
        *,
        values: bool,
        saved: tuple[dict[str, Any], dict[str, Any]],
    ) -> None:
        facts, measured, calls = to_message(recording, values=values)
        super().__init__(
            facts=facts,
            measured=measured,
            rows=calls.rows,
            unit_ns=calls.unit_ns,
            calls=calls.raw,
            crossings=calls.crossings,
        )
        self._saved = saved

    def __repr__(self) -> str:
        return self._saved[0]["text/plain"]

    def _repr_mimebundle_(self, **options: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the widget, and the data that can be shown without a kernel."""
        data, metadata = self._saved
        shown: Any = super()._repr_mimebundle_(**options)
        widget = shown[0] if isinstance(shown, tuple) else shown
        return {**(widget or {}), **data}, metadata
