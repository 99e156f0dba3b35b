"""`Session`, the extension loaded into a shell: what happens when cells begin and end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.core.interactiveshell import InteractiveShell
from IPython.display import display

from ...capabilities import Unfinished, queue
from ...diagnostics import (
    Record,
    Watch,
    drain,
    environment,
    is_off,
    start,
    start_noting,
    start_observing,
    still_running,
    stop,
    stop_noting,
    stop_observing,
    unfinished_programs,
)
from ...recording import Check, Checks, Mark, Matrix, Recorder, Recording, visible
from ...register import Callback
from ...report import SiteProgress, SiteSummary, SnapshotView, summarize
from ...stack import all_counted, host_error, interrupt, is_a, release
from ..display import (
    History,
    HostTrace,
    LineValues,
    Link,
    LiveView,
    Origins,
    Sites,
    check_bundle,
    matrix_bundle,
    snapshot,
)
from ..errors import ErrorDisplay
from ._cell_barrier import ENDING_SECONDS, Barrier, left_running
from ._cell_runs import CellRuns, Loading
from ._code_clock import CodeClock
from ._earlier_threads import EarlierThreads
from ._hangs import Hangs
from ._output_routing import OutputRouting
from ._stop_button import Stop
from ._timed_code import TimedCode


class Session:
    """The extension while it is loaded into one shell.

    Attributes:
        shell: IPython's shell.
        automatic: whether every cell with callbacks shows its host trace.
        values: whether it shows sample values too; they are saved with the notebook.
        sites: the totals of all sites so far.
        history: the last runs of each cell.
        origins: the cells that lines of code are in.
        line_values: what watched cells have seen, by line.
        code: measures how long the code of the running cell runs.
        bodies: file names under which the running cell has compiled the bodies of magics.
        at_end: shows what the cell displays above its host trace, when it has printed everything.
        barrier: waits for host calls at the end of a cell.
        hangs: reports that no host call of a cell returns.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.automatic = not is_off()
        self.values = False
        self.sites = Sites()
        self.history = History()
        self.origins = Origins(shell)
        self.line_values = LineValues(self.origins)
        self.code = CodeClock(shell)
        self._code_before_ns = 0  # it showed this when the recording began
        self.bodies: list[str] = []
        self.at_end: list[Callable[[], None]] = []
        self.barrier = Barrier()
        self._kept: list[tuple[Recording, bool]] = []  # to show at the end of the cell; values?
        self._errors = ErrorDisplay(shell, self.code.stop)
        self.hangs = Hangs(shell, self._so_far)
        self._stop = Stop(Session._cell_ends.__code__, self.hangs.cannot_end)
        self._routing = OutputRouting(shell)
        self._runs = CellRuns(shell)
        self._timed = TimedCode(shell, self.code)
        self._threads = EarlierThreads()
        self._last = 0  # number of the cell that has ended last
        self._link = Link(shell, self._snapshot, self.origins.place, self.history.to_json)
        self._live: LiveView | None = None
        self._progress: Sequence[SiteProgress] = ()  # of the running cell
        self._formatter: Any = shell.display_formatter.mimebundle_formatter  # type: ignore
        self._values_here = False  # requested by the running cell
        self._depth = 0  # number of running cells: run_cell nests
        self._recorder: Recorder | None = None
        self._mark: Mark | None = None

    @property
    def in_terminal(self) -> bool:
        """Whether output goes to a terminal, where times are shown because nothing is saved."""
        return getattr(self.shell, "kernel", None) is None

    def open(self) -> None:
        """Hook into the shell; the rest of the cell that loads the extension is recorded."""
        self.shell.events.register("pre_run_cell", self._cell_begins)
        self.shell.events.register("post_run_cell", self._cell_ends)
        self._errors.install()
        self._routing.open()
        loading = Loading.in_shell(self.shell)
        self._runs.begin(loading)
        self.origins.begin(loading)
        self._timed.open()
        self.code.install()
        self.code.begin(in_code=True)
        self._formatter.for_type(Recording, lambda recording: self.trace(recording).bundle())
        self._formatter.for_type(Matrix, lambda matrix: matrix_bundle(matrix, self.origins))
        for kind in (Check, Checks):
            self._formatter.for_type(kind, self._check_bundle)
        self._formatter.for_type(Record, lambda record: self.trace(record.recording).bundle())
        if not is_off():
            start_noting(self)
        if self.automatic:
            self._start_recording()
        self._link.open()
        self.hangs.offer()

    def close(self) -> None:
        """Remove every hook."""
        self.shell.events.unregister("pre_run_cell", self._cell_begins)
        self.shell.events.unregister("post_run_cell", self._cell_ends)
        self._errors.remove()
        self._routing.close()
        self._stop.close()
        self._formatter.pop(Recording)
        for kind in (Matrix, Check, Checks):
            self._formatter.pop(kind)
        self._formatter.pop(Record)
        live = self._stop_watching()
        if live is not None:
            live.remove()
        self._stop_recording()
        self._runs.close()
        self._timed.close()
        self.code.remove()
        self._observe(False)
        stop_noting(self)
        self._link.close()

    def keep(self, recording: Recording, *, values: bool) -> None:
        """Show `recording` at the end of the cell, unless the whole cell is shown anyway.

        A recording with a profile is shown in place of that of the whole cell.
        """
        if self._recorder is None or recording.profile is not None:
            self._kept.append((recording, values))
        else:
            self._values_here |= values

    def trace(self, recording: Recording, *, values: bool | None = None) -> HostTrace:
        """Return the display of `recording` for a notebook or terminal."""
        shown = self.values if values is None else values
        return HostTrace(
            recording,
            times=self.in_terminal,
            values=shown,
            place=self.origins.place,
            name=self._link.keep(recording),
        )

    def _check_bundle(self, found: Check | Checks) -> tuple[dict, dict]:
        return check_bundle(found, self.origins, self.callbacks)

    def _snapshot(self) -> SnapshotView:
        running = self._depth > 0 or self._live is not None
        return snapshot(
            self.callbacks(), self.sites, self.origins, running=running,
            values=self.line_values.to_json(), live=self._progress,
        )  # fmt: skip

    def show_values(self, seen: Watch) -> None:
        """Show beside the lines of the notebook what a watched cell has seen so far."""
        self.line_values.add(seen.series)
        self._link.push()

    def callbacks(self) -> dict[str, Callback]:
        """Return the registered callbacks in the user's namespace, by name."""
        return {
            name: value
            for name, value in list(self.shell.user_ns.items())
            if isinstance(value, Callback) and not name.startswith("_")
        }

    def set_automatic(self, automatic: bool, *, values: bool, jax: bool = False) -> None:
        """Turn the host traces of all cells on or off, beginning with the running cell."""
        self.automatic, self.values = automatic, values
        self._observe(jax and automatic)
        if automatic:
            self._start_recording()
        else:
            self._stop_recording()

    def _observe(self, jax: bool) -> None:
        """Set whether JAX's own callbacks are recorded too."""
        (start_observing if jax else stop_observing)(self)

    def _cell_begins(self, info: Any = None) -> None:
        self._depth += 1
        self._runs.begin(info)
        if self._depth == 1:
            release()
            self.code.begin()
            self._stop.begin()
            self.origins.begin(info)
            self._threads.begin(self._last)
            if self.automatic:
                self._start_recording()
                self._start_watching()
            self.hangs.begin(self._live)

    def _cell_ends(self, result: Any = None) -> None:
        self._depth = max(self._depth - 1, 0)
        self._runs.end(getattr(result, "info", None))
        if result is not None:
            self.bodies += _code_names(self.shell, result)
            count = getattr(result, "execution_count", None) or 0
            self.origins.numbers.update(dict.fromkeys(self.bodies, count))
        if self._depth:
            return
        self._runs.close()
        self.code.end()
        self._last = getattr(result, "execution_count", None) or 0
        try:
            self._end(result)
        finally:
            self._stop.end()
            self.hangs.end()

    def _end(self, result: Any) -> None:
        live = None
        try:
            try:
                in_flight = self._settle(result)
            finally:
                live = self._stop_watching()
            self._show_cell(result, in_flight, live)
        finally:
            if live is not None:
                live.remove()

    def _show_cell(self, result: Any, in_flight: Unfinished, live: LiveView | None) -> None:
        """Show the host trace of the cell below everything it printed, and remove `live`."""
        cells, self.bodies = self.bodies, []
        at_end, self.at_end = self.at_end, []
        kept, self._kept = self._kept, []
        recorded = [recording for recording, _ in kept]
        if self._recorder is not None:
            values = self.values or self._values_here
            recorded = [self._finish(self._recorder, cells)]
            kept = kept or [(recorded[0], values)]
        self._routing.cell_over(in_flight, self._last)
        self._values_here = False
        self.line_values.add_raised(host_error(getattr(result, "error_in_exec", None)))
        sites = [(recording, self.sites.add(recording, self._last)) for recording in recorded]
        traces = [self.trace(recording, values=values) for recording, values in kept]
        if live is not None:
            live.remove()
        for show in at_end:
            show()
        shown = [trace for trace in traces if trace]
        self._add_runs(shown, sites, self._last)
        for trace in shown:
            display(trace)
        self._link.push()

    def _add_runs(
        self,
        traces: list[HostTrace],
        summarized: list[tuple[Recording, list[SiteSummary]]],
        number: int,
    ) -> None:
        """Add the traces of the running cell to its history, if a page can ask for them."""
        cell = self.origins.running
        for place, trace in enumerate(traces):
            if cell is not None and trace.name:
                known = (sites for recording, sites in summarized if recording is trace.recording)
                sites = next(known, None)
                sites = summarize(trace.recording) if sites is None else sites
                self.history.add(cell, place, trace.name, number, sites)

    def _settle(self, result: Any) -> Unfinished:
        """Wait for the host calls of the cell; return them, finished or not."""
        if isinstance(getattr(result, "error_in_exec", None), KeyboardInterrupt):
            if not self._stop.pressed:  # the cell has installed its own signal handler
                interrupt()
            self._stop.pressed = True
        in_flight = Unfinished()
        interrupted = self._stop.pressed
        try:
            if interrupted:
                self._wait_for_queue(in_flight)
            elif self._dispatched() and self.barrier.wait(in_flight, self._stop):
                self._show_errors(in_flight)
        except KeyboardInterrupt:
            interrupt()
            interrupted = True
            dropped = queue.drop()
            if dropped:
                print(visible(f"interrupted; dropped {dropped}"))
        self._stop.pressed = interrupted
        if interrupted and not in_flight.wait(ENDING_SECONDS):
            print(visible(left_running()))
        return in_flight

    def _wait_for_queue(self, unfinished: Unfinished) -> None:
        """Wait for what an interrupted cell has queued; another interrupt drops it."""
        self._stop.pressed = False
        if queue.is_busy():
            self.barrier.wait(unfinished, self._stop)

    def _dispatched(self) -> bool:
        """Whether the running cell may have dispatched host calls; False without recording."""
        recorder, mark = self._recorder, self._mark
        if recorder is None or mark is None or not self.barrier.seconds:
            return False
        return recorder.touched(mark) or not all_counted() or queue.is_busy()

    def _show_errors(self, in_flight: Unfinished) -> None:
        """Show the errors of programs that the user did not wait for, each once."""
        shown: list[BaseException] = []
        try:
            drain(0)
        except BaseException as error:
            original = host_error(error)
            if not is_a(error, Exception) and original is None:
                raise  # an interrupt of the waiting itself
            shown.append(error if original is None else original)
            self._errors.show(error)
        for error in in_flight.errors():
            original = host_error(error)
            if original is not None and not any(original is one for one in shown):
                shown.append(original)
                self._errors.show(error)

    def _finish(self, recorder: Recorder, cells: list[str]) -> Recording:
        mark = self._mark
        in_runs = unfinished_programs()
        self._stop_recording()  # first: no call begins after the search for those that run
        running = still_running(recorder)
        ran_ns = max(self.code.ns - self._code_before_ns, 0)  # a magic that compiles does not count
        made = recorder.freeze(
            mark,
            cells=cells,
            environment=environment(),
            running=running,
            code=(ran_ns, self.code.ended_ns),
            unfinished=in_runs | unfinished_programs(),
        )
        return self._threads.marked(made)

    def _so_far(self) -> Recording | None:
        """Return what the running cell has recorded, also on another thread."""
        recorder, mark = self._recorder, self._mark
        if recorder is None or mark is None:
            return None
        return recorder.freeze(
            mark,
            environment=environment(),
            running=still_running(recorder),
            unfinished=unfinished_programs(),
        )

    @property
    def is_attended(self) -> bool:
        """Whether a user may look at the cell that runs.

        A terminal, nbconvert and nbval send no cell id, and show nothing while their cells run.
        """
        return self.origins.running is not None

    def _start_watching(self) -> None:
        if self.is_attended and self._recorder is not None and self._mark is not None:
            self._live = LiveView(self._recorder, self._mark, self._report, self.origins.where)
            self._live.begin()

    def _stop_watching(self) -> LiveView | None:
        """End the updates of the live view; return the view, which is still shown."""
        live, self._live = self._live, None
        if live is not None:
            live.end()
        self._progress = ()
        return live

    def _report(self, progress: Sequence[SiteProgress]) -> None:
        self._progress = progress
        self._link.repeat()

    def _start_recording(self) -> None:
        if self._recorder is None:
            recorder = start(self)
            self._mark = recorder.mark()
            self._recorder = recorder
            self._code_before_ns = self.code.ns

    def _stop_recording(self) -> None:
        self._recorder = None
        stop(self)


def _code_names(shell: InteractiveShell, result: Any) -> list[str]:
    """Return the file name under which the cell that has just run was compiled."""
    if result.info is None or result.error_before_exec is not None:
        return []
    raw = result.info.raw_cell
    return [shell.compile.get_code_name(raw, shell.transform_cell(raw), result.execution_count)]
