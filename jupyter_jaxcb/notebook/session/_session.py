"""`Session`, the extension loaded into a shell: what happens when cells begin and end."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
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
from ...recording import (
    Check,
    Checks,
    Mark,
    Matrix,
    Recorder,
    Recording,
    set_cells,
    unnumbered,
    visible,
)
from ...register import Callback
from ...report import SiteProgress, SnapshotView, summarize
from ...stack import (
    Run,
    all_counted,
    cell_begins,
    cell_ends,
    host_error,
    interrupt,
    is_a,
    release,
)
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
    watch_bundle,
)
from ..errors import ErrorDisplay
from ._cell_barrier import DEFAULT_SECONDS, ENDING_SECONDS, left_running, wait_for_calls
from ._code_clock import CodeClock
from ._earlier_threads import EarlierThreads
from ._hangs import Hangs
from ._output_routing import OutputRouting
from ._stop_button import Stop

_LOADING = 0  # the key of the cell that loads the extension: no id is 0


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
        wait_seconds: how long a cell waits for its host calls at its end; 0: it does not.
        hangs: reports that no host call of a cell returns.
        in_terminal: whether output goes to a terminal, where times are shown because nothing is
            saved.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell
        self.in_terminal = getattr(shell, "kernel", None) is None
        self.automatic, self.values = not is_off(), False
        self.sites, self.history = Sites(), History()
        self.origins = Origins(shell)
        self.line_values = LineValues(self.origins)
        self.code = CodeClock(shell)
        self.wait_seconds = DEFAULT_SECONDS
        self.hangs = Hangs(shell, self._so_far)
        self._hooks = contextlib.ExitStack()
        self._errors = ErrorDisplay(shell, self.code.stop)
        self._stop = Stop(Session._cell_ends.__code__, self.hangs.cannot_end)
        self._routing = OutputRouting(shell)
        self._threads = EarlierThreads()
        self._link = Link(shell, self._snapshot, self.origins.place, self.history.to_json)
        # Of the running cell:
        self._running: dict[int, tuple[Any, Run]] = {}  # and those that it runs, by id of the info
        self.bodies: list[str] = []
        self.at_end: list[Callable[[], None]] = []
        self._kept: list[tuple[Recording, bool]] = []  # to show at its end; with values?
        self._displayed: list[Recording] = []  # by its own code
        self._values_here = False  # it asked for values
        self._live: LiveView | None = None
        self._progress: Sequence[SiteProgress] = ()
        self._recorder: Recorder | None = None
        self._mark: Mark | None = None
        self._code_before_ns = 0  # `code` showed this when the recording began
        self._last = 0  # number of the cell that has ended last

    def open(self) -> None:
        """Hook into the shell; the rest of the cell that loads the extension is recorded."""
        on_close = self._hooks.callback
        set_cells(self.origins)
        on_close(set_cells, None)
        on_close(self._link.close)
        on_close(stop_noting, self)
        on_close(stop_observing, self)
        for event, hook in (
            ("pre_run_cell", self._cell_begins),
            ("post_run_cell", self._cell_ends),
        ):
            self.shell.events.register(event, hook)
            on_close(self.shell.events.unregister, event, hook)
        formatter: Any = self.shell.display_formatter.mimebundle_formatter  # type: ignore
        for kind, bundle in {
            Recording: self._bundle,
            Record: lambda record: self._bundle(record.recording),
            Matrix: lambda matrix: matrix_bundle(matrix, self.origins),
            Check: self._check_bundle,
            Checks: self._check_bundle,
            Watch: lambda seen: watch_bundle(seen, "", self.origins),
        }.items():
            formatter.for_type(kind, bundle)
            on_close(formatter.pop, kind)
        for begin, end in (
            (self._errors.install, self._errors.remove),
            (self._routing.open, self._routing.close),
            (self.code.install, self.code.remove),
        ):
            begin()
            on_close(end)
        on_close(self._stop.close)
        # The cell that loads the extension began before there were hooks.
        message = getattr(self.shell, "get_parent", dict)()  # a terminal has none
        code = message.get("content", {}).get("code", "")
        cell = message.get("metadata", {}).get("cellId")
        self._begin_run(_LOADING, SimpleNamespace(raw_cell=code, cell_id=cell))
        self.code.begin(in_code=True)
        if not is_off():
            start_noting(self)
        if self.automatic:
            self._start_recording()
        self._link.open()
        self.hangs.left.offer()

    def close(self) -> None:
        """Remove every hook."""
        live = self._stop_watching()
        if live is not None:
            live.remove()
        self._stop_recording()
        self._end_runs()
        self._hooks.close()

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
        return HostTrace(
            recording,
            times=self.in_terminal,
            values=self.values if values is None else values,
            place=self.origins.place,
            name=self._link.keep(recording),
        )

    def _bundle(self, recording: Recording) -> tuple[dict, dict]:
        self._displayed.append(recording)
        return self.trace(recording).bundle()

    def _check_bundle(self, check: Check | Checks) -> tuple[dict, dict]:
        return check_bundle(check, self.origins, self.callbacks)

    def _snapshot(self) -> SnapshotView:
        running = self._depth > 0 or self._live is not None
        return snapshot(
            self.callbacks(), self.sites, self.origins, running=running,
            values=self.line_values.to_json(), live=self._progress,
        )  # fmt: skip

    def show_values(self, seen: Watch) -> None:
        """Show beside the lines of the notebook what a watched cell has seen so far."""
        self.line_values.add(seen.marked(), seen.first_bad)
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
        (start_observing if jax and automatic else stop_observing)(self)
        (self._start_recording if automatic else self._stop_recording)()

    @property
    def is_attended(self) -> bool:
        """Whether a user may look at the cell that runs.

        A terminal, nbconvert and nbval send no cell id, and show nothing while their cells run.
        """
        return self.origins.running is not None

    def _begin_run(self, key: int, info: Any) -> None:
        """Begin a cell, or one that a cell runs; `info` is IPython's information about it.

        JupyterLab and Notebook 7 send the id of a cell; nbclient, nbval and a terminal do not.
        """
        cell = getattr(info, "cell_id", None)
        run = cell_begins(self.shell.user_ns, None if cell is None else ("cell", cell))
        self._running[key] = info, run  # the info is kept alive, so that its id is its own
        if self._depth <= 1:
            self.origins.begin(info)

    @property
    def _depth(self) -> int:
        """How many cells run, since cells run others; without the one that loads the extension."""
        return len(self._running.keys() - {_LOADING})

    def _end_runs(self) -> None:
        while self._running:
            cell_ends(self._running.popitem()[1][1])

    def _cell_begins(self, info: Any) -> None:
        self._begin_run(id(info), info)
        if self._depth > 1:
            return
        release()
        self.code.begin()
        self._stop.begin()
        self._threads.begin(self._last)
        if self.automatic:
            self._start_recording()
            if self.is_attended and self._recorder is not None and self._mark is not None:
                self._live = LiveView(self._recorder, self._mark, self._report, self.origins.where)
                self._live.begin()
        self.hangs.begin(self._live)

    def _cell_ends(self, result: Any) -> None:
        ended = self._running.pop(id(result.info), None) or self._running.pop(_LOADING, None)
        if ended is None:  # a blank cell, which has not begun
            return
        cell_ends(ended[1])
        count = result.execution_count or 0
        if result.info is not None and result.error_before_exec is None:
            raw = result.info.raw_cell
            name = self.shell.compile.get_code_name(
                raw, self.shell.transform_cell(raw), result.execution_count
            )
            self.bodies.append(name)
        self.origins.numbers.update(dict.fromkeys(self.bodies, count))
        if self._depth:  # it was run by a cell
            return
        self._end_runs()
        self.code.end()
        self._last = count
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
            self._stop.end()
            self.hangs.end()

    def _settle(self, result: Any) -> Unfinished:
        """Wait for the host calls of the cell; return them, finished or not."""
        if isinstance(result.error_in_exec, KeyboardInterrupt):
            if not self._stop.pressed:  # the cell has installed its own signal handler
                interrupt()
            self._stop.pressed = True
        in_flight, interrupted = Unfinished(), self._stop.pressed
        try:
            if interrupted:
                self._stop.pressed = False  # pressed again, it drops what the cell has queued
                if queue.is_busy():
                    self._wait(in_flight)
            elif self._has_dispatched() and self._wait(in_flight):
                self._show_errors(in_flight)
        except KeyboardInterrupt:
            interrupt()
            interrupted = True
            if dropped := queue.drop():
                print(visible(f"interrupted; dropped {dropped}"))
        self._stop.pressed = interrupted
        if interrupted and not in_flight.wait(ENDING_SECONDS):
            print(visible(left_running()))
        return in_flight

    def _wait(self, in_flight: Unfinished) -> bool:
        return wait_for_calls(in_flight, self.wait_seconds, lambda: self._stop.pressed)

    def _has_dispatched(self) -> bool:
        """Whether the running cell may have dispatched host calls; False without recording."""
        recorder, mark = self._recorder, self._mark
        if recorder is None or mark is None or not self.wait_seconds:
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
            if original is not None and not any(original is before for before in shown):
                shown.append(original)
                self._errors.show(error)

    def _show_cell(self, result: Any, in_flight: Unfinished, live: LiveView | None) -> None:
        """Show the host trace of the cell below everything it printed, and remove `live`."""
        cells, self.bodies = self.bodies, []
        at_end, self.at_end = self.at_end, []
        kept, self._kept = self._kept, []
        displayed, self._displayed = self._displayed, []
        recorded = [recording for recording, _ in kept]
        if self._recorder is None:
            displayed = []
        else:
            whole = self._finish(self._recorder, cells)
            recorded = [whole]
            values = self.values or self._values_here
            # Not again, if the cell has displayed a block that has all of it: it ends with `r`.
            displayed = [each for each in displayed if len(each) and _has_all(each, whole)]
            kept = kept or ([] if displayed else [(whole, values)])
        self._routing.cell_over(in_flight, self._last)
        self._values_here = False
        self.line_values.add_raised(host_error(result.error_in_exec))
        sites = {id(one): self.sites.add(unnumbered(one), self._last) for one in recorded}
        traces = [self.trace(recording, values=values) for recording, values in kept]
        if live is not None:
            live.remove()
        for show in at_end:
            show()
        shown = [trace for trace in traces if trace]
        cell = self.origins.running
        for place, trace in enumerate(shown or map(self.trace, displayed[-1:])):
            if cell is not None and trace.name:  # a page can ask for it
                summaries = sites.get(id(trace.recording))
                if summaries is None:
                    summaries = summarize(unnumbered(trace.recording))
                code = result.info.raw_cell if result.info is not None else ""
                self.history.add(
                    cell, place, trace.name, self._last, code, trace.recording, summaries
                )
        for trace in shown:
            display(trace)
        self._link.push()

    def _finish(self, recorder: Recorder, cells: list[str]) -> Recording:
        """End the recording of the cell, and return it."""
        mark = self._mark
        in_runs = unfinished_programs()
        self._stop_recording()  # first: no call begins after the search for those that run
        ran_ns = max(self.code.ns - self._code_before_ns, 0)  # a magic that compiles does not count
        made = recorder.freeze(
            mark,
            cells=cells,
            environment=environment(),
            running=still_running(recorder),
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

    def _report(self, progress: Sequence[SiteProgress]) -> None:
        self._progress = progress
        self._link.repeat()

    def _stop_watching(self) -> LiveView | None:
        """End the updates of the live view; return the view, which is still shown."""
        live, self._live = self._live, None
        if live is not None:
            live.end()
        self._progress = ()
        return live

    def _start_recording(self) -> None:
        if self._recorder is None:
            recorder = start(self)
            self._mark = recorder.mark()
            self._recorder = recorder
            self._code_before_ns = self.code.ns

    def _stop_recording(self) -> None:
        self._recorder = None
        stop(self)


def _has_all(recording: Recording, whole: Recording) -> bool:
    """Return whether a recording of a block has every bind and call of that of the cell."""
    return recording.bound == whole.bound and len(recording) == len(whole)
