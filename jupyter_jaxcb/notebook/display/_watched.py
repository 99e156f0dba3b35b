"""The values that a watched cell has seen, while it runs and after it."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable

from IPython.display import DisplayHandle, display

from ...diagnostics import Watch
from ...recording import element, html
from ._live import LIVE

UPDATE_SECONDS = 1.0


class WatchedView:
    """Shows what a cell has seen, once a second from a separate thread, and at its end.

    Args:
        seen: what the cell has seen.
        report: called with it whenever it is shown.
    """

    def __init__(self, seen: Watch, report: Callable[[Watch], None]) -> None:
        self._seen = seen
        self._report = report
        self._over = threading.Event()
        self._handle: DisplayHandle | None = None
        # A copy of the context, so that the thread's output goes to the running cell.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="jupyter_jaxcb watch", daemon=True
        )

    def begin(self) -> None:
        """Start the updates."""
        self._thread.start()

    def end(self) -> None:
        """Stop the updates, if they were started."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join()

    def finish(self, before: Watch | None) -> None:
        """Show everything anew, compared with an earlier cell's, below what the cell printed."""
        shown, self._handle = self._handle, None
        if shown is not None:
            shown.update({}, metadata={LIVE: False}, raw=True)
        self._show("" if before is None else str(self._seen.compare(before)))

    def _run(self) -> None:
        while not self._over.wait(UPDATE_SECONDS):
            self._show(self._seen.so_far(time.monotonic()))

    def _show(self, above: str) -> None:
        text, page = str(self._seen), self._seen._repr_html_()
        if above:
            shown = element("div", above, role="status", style="white-space:pre-line")
            text, page = f"{above}\n{text}", html(shown, page)
        data = {"text/plain": text, "text/html": page}
        if self._handle is None:
            self._handle = display(data, raw=True, display_id=True)
        else:
            self._handle.update(data, raw=True)
        self._report(self._seen)
