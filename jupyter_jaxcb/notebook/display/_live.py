"""The live view: progress of a running cell."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import DisplayHandle, display

from ...diagnostics import running_calls, warn_of_running
from ...recording import LoweredSite, Mark, Recorder, Recording, YieldPoints
from ...report import LONG_NS, CallColumns, HangView, Progress, SiteProgress, Where

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
LIVE = "jupyter_jaxcb_live"  # in the metadata, see live-outputs.ts; False: the cell has ended
UNFINISHED = "jupyter_jaxcb: the cell is still running"
DELAY_SECONDS = 0.5  # shorter cells have no live view
UPDATE_SECONDS = 0.1
_REPORT_EVERY = 5  # updates
_HELD = 5  # updates until the page has built the view; host calls sent earlier would be lost


class LiveView:
    """Shows the progress of a running cell, ten times a second, from a separate thread.

    Args:
        recorder: the recorder of the cell.
        mark: the beginning of the cell.
        report: called with the progress of all sites, twice a second.
        where: names places.
    """

    def __init__(
        self,
        recorder: Recorder,
        mark: Mark,
        report: Callable[[Sequence[SiteProgress]], None],
        where: Where,
    ) -> None:
        self._recorder = recorder
        self._mark = mark
        self._report = report
        self._over = threading.Event()
        self._turns = YieldPoints(recorder, int(UPDATE_SECONDS * 1e9))
        self._progress = Progress(recorder.clock(), where)
        self._widget: Any = None
        self._shown: DisplayHandle | None = None
        self._running: Sequence[LoweredSite] = ()  # of the calls that ran at the last update
        self._held: list[tuple[CallColumns, int]] = []  # calls not sent yet, with their begin
        self._hang: HangView = {}
        # A copy of the context, so that the thread's output goes to the running cell.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="jupyter_jaxcb live", daemon=True
        )

    def begin(self) -> None:
        """Start the thread."""
        self._thread.start()

    def tell(self, hang: HangView | None) -> None:
        """Show the notice that the cell hangs: its title, text and stacks; None removes it."""
        self._hang = hang or {}

    def end(self) -> None:
        """Stop updating the view, and return when the thread has ended."""
        self._over.set()
        self._turns.wake()
        self._thread.join()

    def remove(self) -> None:
        """Empty the output of the view, whose place JupyterLab then removes."""
        shown, self._shown = self._shown, None
        if shown is None:
            return
        shown.update({}, metadata={LIVE: False}, raw=True)
        self._widget.remove()

    def _run(self) -> None:
        if self._over.wait(DELAY_SECONDS):
            return
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

    def _update(self, updates: int) -> Recording:
        """Show the current progress, after a number of earlier updates."""
        snapshot = self._recorder.snapshot(self._mark, self._progress.seen, self._running)
        running = running_calls(self._recorder)
        self._running = [call.lowered for call in running]
        calls = self._progress.add(snapshot, running)
        now = self._recorder.clock()
        message = self._progress.to_message(snapshot, now, running)
        for call in running:
            if now - (call.start_ns or now) > LONG_NS:
                warn_of_running(call)
        if message["calls"] or message["running"] or self._hang:
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
                self._widget.hang = self._hang
            return
        from ._widget import LiveWidget

        self._widget = LiveWidget(progress=message, threads=threads, hang=self._hang)
        bundle = self._widget._repr_mimebundle_()
        widget = bundle[0] if isinstance(bundle, tuple) else bundle
        # The text is for front ends without widgets, and for a notebook that is saved meanwhile.
        data = {WIDGET_VIEW: widget[WIDGET_VIEW], "text/plain": UNFINISHED}
        self._shown = display(data, metadata={LIVE: True}, raw=True, display_id=True)
