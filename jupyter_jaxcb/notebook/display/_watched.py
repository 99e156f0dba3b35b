"""The values that a watched cell has seen, while it runs and after it."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable

from IPython.display import DisplayHandle, display

from ...diagnostics import Watch
from ._live import LIVE
from ._origins import Origins
from ._output import watch_bundle

UPDATE_SECONDS = 1.0


class WatchedView:
    """Shows what a cell has seen, once a second from a separate thread, and at its end.

    Args:
        seen: what the cell has seen.
        report: called with it whenever it is shown.
        origins: the cells of the lines that it names.
    """

    def __init__(self, seen: Watch, report: Callable[[Watch], None], origins: Origins) -> None:
        self._seen = seen
        self._origins = origins
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
        data, metadata = watch_bundle(self._seen, above, self._origins)
        if self._handle is None:
            self._handle = display(data, metadata=metadata, raw=True, display_id=True)
        else:
            self._handle.update(data, metadata=metadata, raw=True)
        self._report(self._seen)
