"""The live view: progress of a running cell."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import DisplayHandle, display

from ...diagnostics import running_calls, warn_of_running
from ...recording import Mark, Recorder, Snapshot, YieldPoints
from ...report import CallColumns, Progress, SiteProgress

DELAY_SECONDS = 0.5  # shorter cells have no live view
UPDATE_SECONDS = 0.1
_REPORT_EVERY = 5  # updates
_HELD = 5  # updates until the page has built the view; host calls sent earlier would be lost
_LONG_NS = 200_000_000  # a call that has been running for this long is listed


class LiveView:
    """Shows the progress of a running cell, ten times a second, from a separate thread.

    Args:
        recorder: the recorder of the cell.
        mark: the beginning of the cell.
        report: called with the progress of all sites, twice a second.
    """

    def __init__(
        self, recorder: Recorder, mark: Mark, report: Callable[[Sequence[SiteProgress]], None]
    ) -> None:
        self._recorder = recorder
        self._mark = mark
        self._report = report
        self._over = threading.Event()
        self._turns = YieldPoints(recorder, int(UPDATE_SECONDS * 1e9))
        self._progress = Progress(recorder.clock())
        self._widget: Any = None
        self._shown: DisplayHandle | None = None
        self._held: list[tuple[CallColumns, int]] = []  # calls not sent yet, with their begin
        # A copy of the context, so that the thread's output goes to the running cell.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="jupyter_jaxcb live", daemon=True
        )

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def end(self) -> None:
        """Remove the view, and return when the thread has ended."""
        self._over.set()
        self._turns.wake()
        self._thread.join()

    def _run(self) -> None:
        if self._over.wait(DELAY_SECONDS):
            return
        try:
            with self._turns:
                updates = 0
                while not self._over.is_set():
                    # Steady host calls give turns; otherwise the timeout ends the wait.
                    given = self._turns.take(UPDATE_SECONDS)
                    snapshot = self._update(updates)
                    if updates % _REPORT_EVERY == 0:
                        self._report(self._progress.sites(snapshot.lowered))
                    updates += 1
                    if given:
                        self._turns.end()
        finally:
            self._hide()

    def _update(self, updates: int) -> Snapshot:
        """Show the current progress, after a number of earlier updates."""
        snapshot = self._recorder.snapshot(self._mark, self._progress.seen)
        calls = self._progress.add(snapshot)
        now = self._recorder.clock()
        running = [
            call
            for call in running_calls(self._recorder)
            if now - (call.start_ns or now) > _LONG_NS
        ]
        for call in running:
            warn_of_running(call)
        if self._progress.seen or running:
            message = self._progress.to_message(snapshot, now, running)
            self._show(message, list(snapshot.threads))
            self._held += [(calls, self._progress.since_first_ns(calls))] if calls.rows else []
            if updates >= _HELD:
                for held in self._held:
                    self._widget.append(*held)
                self._held.clear()
        return snapshot

    def _show(self, message: dict[str, Any], threads: list[str]) -> None:
        if self._widget is not None:
            with self._widget.hold_sync():
                self._widget.progress, self._widget.threads = message, threads
            return
        from ._widget import LiveWidget

        self._widget = LiveWidget(progress=message, threads=threads)
        bundle = self._widget._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        # Only the widget's own data: nothing is to be saved, or compared by nbval.
        key = "application/vnd.jupyter.widget-view+json"
        self._shown = display({key: data[key]}, raw=True, display_id=True)

    def _hide(self) -> None:
        if self._shown is not None:
            self._shown.update({}, raw=True)
            self._widget.close()
