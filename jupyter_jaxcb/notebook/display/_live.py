"""What is shown while a cell runs."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import DisplayHandle, display

from ...diagnostics import running_calls, warn_of_running
from ...recording import Mark, Recorder, Snapshot, YieldPoints
from ...report import CallColumns, Progress, SiteProgress

FIRST_LOOK_SECONDS = 0.5  # a shorter cell shows its end alone
LOOK_SECONDS = 0.1
_TELL_EVERY = 5  # looks
_HELD = 5  # looks until a page has made the view: host calls that are sent before are lost
_LONG_NS = 200_000_000  # a call that has been running for this long is named


class Live:
    """Looks at the recorder ten times a second, from a thread of its own, while a cell runs.

    Args:
        recorder: of the cell.
        mark: when the cell began.
        tell: called with what the sites have done so far, twice a second.
    """

    def __init__(
        self, recorder: Recorder, mark: Mark, tell: Callable[[Sequence[SiteProgress]], None]
    ) -> None:
        self._recorder = recorder
        self._mark = mark
        self._tell = tell
        self._over = threading.Event()
        self._turns = YieldPoints(recorder, int(LOOK_SECONDS * 1e9))
        self._progress = Progress(recorder.clock())
        self._widget: Any = None
        self._shown: DisplayHandle | None = None
        self._held: list[tuple[CallColumns, int]] = []  # not sent yet, and since when they count
        # A copy of the context: what the thread displays belongs to the cell that is running now.
        context = contextvars.copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="jupyter_jaxcb live", daemon=True
        )

    def begin(self) -> None:
        """Starts looking."""
        self._thread.start()

    def end(self) -> None:
        """Takes away what was shown; returns when the thread has ended."""
        self._over.set()
        self._turns.wake()
        self._thread.join()

    def _run(self) -> None:
        if self._over.wait(FIRST_LOOK_SECONDS):
            return
        try:
            with self._turns:
                looks = 0
                while not self._over.is_set():
                    # Host calls that go on and on give us turns; others leave us the time.
                    given = self._turns.take(LOOK_SECONDS)
                    self._look_and_tell(looks)
                    looks += 1
                    if given:
                        self._turns.end()
        finally:
            self._hide()

    def _look_and_tell(self, looks: int) -> None:
        heard = self._look(looks)
        if looks % _TELL_EVERY == 0:
            self._tell(self._progress.sites(heard.lowered))

    def _look(self, looks: int) -> Snapshot:
        heard = self._recorder.snapshot(self._mark, self._progress.seen)
        calls = self._progress.add(heard)
        now = self._recorder.clock()
        running = [
            call
            for call in running_calls(self._recorder)
            if now - (call.start_ns or now) > _LONG_NS
        ]
        for call in running:
            warn_of_running(call)
        if self._progress.seen or running:
            message = self._progress.to_message(heard, now, running)
            self._show(message, list(heard.threads))
            self._held += [(calls, self._progress.since_first_ns(calls))] if calls.rows else []
            if looks >= _HELD:
                for held in self._held:
                    self._widget.append(*held)
                self._held.clear()
        return heard

    def _show(self, message: dict[str, Any], threads: list[str]) -> None:
        if self._widget is not None:
            with self._widget.hold_sync():
                self._widget.progress, self._widget.threads = message, threads
            return
        from ._widget import LiveWidget

        self._widget = LiveWidget(progress=message, threads=threads)
        bundle = self._widget._repr_mimebundle_()
        data = bundle[0] if isinstance(bundle, tuple) else bundle
        # The widget alone: nothing of it is to be saved, or compared by nbval.
        key = "application/vnd.jupyter.widget-view+json"
        self._shown = display({key: data[key]}, raw=True, display_id=True)

    def _hide(self) -> None:
        if self._shown is not None:
            self._shown.update({}, raw=True)
            self._widget.close()
