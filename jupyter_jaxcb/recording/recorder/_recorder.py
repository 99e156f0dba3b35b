"""`Recorder`, the mutable object that collects the facts of a recording."""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from threading import get_ident
from typing import Any, Protocol

import numpy as np

from .._facts import (
    Compilation,
    LoweredSite,
    MaskUse,
    NotFinite,
    NotKept,
    ObjectUse,
    Outcome,
    Program,
    QueueUse,
    Running,
    Site,
    numbers_of,
)
from .._recording import Recording
from ._log import CallLog, Counts
from ._plain import RECENT, PlainCalls, PlainTimes
from ._sample_values import Values
from ._window import BEGINNING, Mark, as_begun, as_observed, places_of, renumbered, without_program
from ._workers import Workers

DEFAULT_CAPACITY = 1_000_000  # host calls


class NativeLog(Protocol):
    """A log of host calls that code without Python writes."""

    def switch(self, recorder: Recorder | None) -> None:
        """Give what is logged to the recorder before, and log for `recorder` from now on."""

    def collect(self, recorder: Recorder) -> None:
        """Give what is logged to `recorder`, if it is the one that is logged for."""


class Backlog(Protocol):
    """Makes host calls some time after their crossings."""

    @property
    def lock(self) -> contextlib.AbstractContextManager[Any]:
        """No call is reported while another thread holds it."""
        ...

    def left(self, recorder: Recorder, since_ns: int) -> Mapping[LoweredSite, int]:
        """Return how many calls each site has left to report.

        Args:
            recorder: to which they will be reported.
            since_ns: when the first of their crossings was made, on its clock.
        """
        ...


native_logs: list[NativeLog] = []
backlogs: list[Backlog] = []  # at most one
QUEUE_THREAD = "queued calls"  # the name of the thread that makes queued calls
COMPILED_THREAD = "compiled code"  # the name for all threads on which compiled code runs


_WHOLE = "the whole recording"  # its key in `Recorder.counts`


class Recorder:
    """Collects facts from the callback stack, in any thread; `freeze` returns a `Recording`.

    Args:
        clock: returns nanoseconds; every start and end is read from it.
        capacity: the number of host calls to log; later ones are only counted, by site.
        sample_values: whether to keep values of the first calls of each site.
        observation: returns how often observing JAX's own callbacks has begun or ended: odd while
            it is on.

    Attributes:
        crossed_ns: when the calls that are recorded were queued; None: they were not.
        called: records rows of host calls, see `CallLog.append`; the one way to record calls.
        values: collects sample values, and counts and marks non-finite results.
        counts: what happened to a site, under names of fields of `QueueUse` and `MaskUse`.
        numbers: the number of each site.
        on_thread: has the number of the current thread, see `enlist_thread`.
        plain: what a site's next call needs to know if it is plain; see `make_plain`.
        moved: the sites that were traced in a loop and called eagerly.
        adrift: the sites that were traced for a program, of which no program has been seen.
        around: wraps a host function before it is called, given the site; None: no wrapper.
    """

    def __init__(
        self,
        clock: Callable[[], int] = time.perf_counter_ns,
        capacity: int = DEFAULT_CAPACITY,
        sample_values: bool = True,
        observation: Callable[[], int] = lambda: 1,
    ) -> None:
        self.clock = clock
        self._observation = observation
        self.counts = Counts()
        self.values = Values(self.counts, sample_values)
        self._object_bytes: dict[str, int] = {}  # by name
        self.around: Callable[[LoweredSite, Callable], Callable] | None = None
        self._log = CallLog(capacity, self.counts)
        self.crossed_ns: int | None = None
        self._crossings = itertools.count()
        self._plain = PlainCalls(self._log, self._crossings)
        self.called: Callable[..., None] = self._log.append
        self.plain: PlainTimes = {}
        self._pause: Callable[[], None] | None = None
        self.adrift: set[Site] = set()
        self.moved: set[Site] = set()
        self._lowered: list[LoweredSite] = []
        self._outcomes: list[Outcome] = []
        self._earlier: list[Outcome] = []  # of programs compiled before this recorder
        self._compilations: list[Compilation] = []
        self._counted: dict[Program, None] = {}  # whose runs are counted
        self._errors: dict[str, int] = {}
        self._stale: set[LoweredSite] = set()
        self.on_thread = threading.local()
        self._foreign_threads: dict[int, int] = {}  # not started by Python; by ident
        self._thread_names: list[str] = []
        self._workers = Workers(self._enlist)
        self._lock = threading.Lock()  # for the tables only, never held while user code runs
        self.numbers = _Numbers(self._lock)

    def bound(self, site: Site, *, adrift: bool = False) -> None:
        """Record that a site was bound: traced, or about to be called eagerly; see `adrift`."""
        self.counts.count(site, "bound")
        if adrift:
            with self._lock:
                self.adrift.add(site)

    def placed(self, sites: Iterable[Site]) -> None:
        """Record that a program has these sites; see `adrift`."""
        with self._lock:
            self.adrift.difference_update(sites)

    def add(self, **sums: int) -> None:
        """Add to what `Recording` has in sum: ``compiled_ns``, ``not_observed``."""
        self.counts.add(_WHOLE, **sums)

    def lowered(self, lowered: LoweredSite) -> None:
        """Record that a site was lowered into a program."""
        _ = self.numbers[lowered]
        self._lowered.append(lowered)

    def add_outcome(self, outcome: Outcome) -> None:
        """Record what a compiled program made of one of the sites bound for it."""
        self._outcomes.append(outcome)

    def add_earlier_outcome(self, outcome: Outcome) -> None:
        """Record an outcome of a program compiled earlier; it is reported if the program runs."""
        self._earlier.append(outcome)

    def add_compilation(self, compilation: Compilation) -> None:
        """Record the compilation of a program, with times."""
        self._compilations.append(compilation)

    def start_counting_runs(self, program: Program) -> None:
        """Record that `ran` will be called for each run of a program, from the first one on."""
        with self._lock:
            self._counted[program] = None

    def ran(self, program: Program) -> None:
        """Record one run of a program."""
        if program in self._counted:
            self.counts.add(program, runs=1, unobserved=1 - self._observation() % 2)

    def lost_count(self, program: Program) -> None:
        """Record that the runs of a program are no longer known."""
        with self._lock:
            self._counted.pop(program, None)

    def object_used(self, name: str, counts: Iterable[int], nbytes: int) -> None:
        """Count uses of a host object, in the order of `ObjectUse`; its objects take `nbytes`."""
        self.counts.add(name, **dict(zip(ObjectUse._fields[1:], counts, strict=False)))
        self._object_bytes[name] = nbytes

    def stale(self, lowered: LoweredSite) -> None:
        """Record that a program called a registration that was replaced under the same name."""
        with self._lock:
            self._stale.add(lowered)

    def plain_called(self, times: list[int]) -> None:
        """Note that a plain call was recorded after which there is more to do."""
        if self._pause is not None:
            self._pause()
        if len(times) >= RECENT:
            self._plain.pack()

    def make_plain(self, lowered: LoweredSite, version: int, plain: PlainTimes) -> None:
        """Let the next calls of a site on this thread be plain, until `forget_plain`.

        Args:
            lowered: the site.
            version: number of the host function's body.
            plain: `self.plain`, from before anything about the call was looked up.
        """
        number, thread = self.numbers[lowered], self.enlist_thread()
        times = self._plain.times(number, thread, version)
        full = RECENT if self._pause is None else 0
        plain[lowered] = get_ident(), times, full, version, self.clock

    def forget_plain(self) -> None:
        """Let every site's next call record more than its times."""
        self.plain = {}

    def pausing(self, pause: Callable[[], None] | None) -> None:
        """Call `pause`, which may wait, after each host call is recorded; None: do so no longer."""
        self._pause = pause
        self.called = self._log.append if pause is None else self._called_and_pause
        self.forget_plain()

    def _called_and_pause(self, rows: bytes, first: bool = True) -> None:
        self._log.append(rows, first)
        if self._pause is not None:
            self._pause()

    def crossing(self) -> int:
        """Return the number of a new crossing, whose calls come after all that have ended."""
        self._plain.collect()
        return next(self._crossings)

    def crossings(self, count: int) -> np.ndarray:
        """Return the numbers of so many new crossings."""
        return np.fromiter(itertools.islice(self._crossings, count), np.uint32, count)

    def error(self, error: str) -> int:
        """Return the number of an error."""
        with self._lock:
            return self._errors.setdefault(error, len(self._errors) + 1)

    def enlist_thread(self) -> int:
        """Return the number of the current thread, `on_thread.number`, which gets one if needed."""
        number = getattr(self.on_thread, "number", None)
        if number is not None:
            return number
        thread = threading.current_thread()
        with self._lock:
            if isinstance(thread, threading._DummyThread):
                # Of XLA: it has a new state of Python, without `on_thread.number`, in each call.
                number = self._foreign_threads.get(get_ident())
                if number is None:
                    number = self._enlist(thread.name)
                    self._foreign_threads[get_ident()] = number
                return number
            # The ident is not enough here: a new thread may get the ident of one that has ended.
            number = self.on_thread.number = self._enlist(thread.name)
            self.on_thread.end = _ThreadEnd(weakref.ref(self))
        return number

    def thread_named(self, name: str) -> int:
        """Return the number of the thread, or of the group of threads, with this name."""
        with self._lock:
            if name not in self._thread_names:
                self._enlist(name)
            return self._thread_names.index(name)

    def worker_rows(self, *made: Any) -> np.ndarray:
        """Return rows of calls that a worker made, see `Workers.rows`."""
        with self._lock:
            return self._workers.rows(*made)

    def room(self) -> int:
        """Return how many more rows the log will keep."""
        self._plain.collect()
        return self._log.room()

    def not_kept(self, lowered: LoweredSite, crossings: int, host_ns: int) -> None:
        """Count crossings of one site for which there are no rows."""
        calls = crossings * (lowered.elements or 1)
        key = self.numbers[lowered], 0
        self.counts.add(key, calls=calls, crossings=crossings, host_ns=host_ns)

    def count(self) -> int:
        """Return how many host calls are recorded, also those that are only counted."""
        self._collect()
        return len(self._log) + _not_kept(self.counts.copy())

    def last_call(self) -> tuple[LoweredSite, int] | None:
        """Return the site of the call that ended last, and its number of calls; None: unknown."""
        self._collect()
        rows = self._log.rows()
        if not len(rows) or _not_kept(self.counts.copy()):
            return None
        number = int(rows["lowered"][rows["end_ns"].argmax()])
        return list(self.numbers)[number], int((rows["lowered"] == number).sum())

    def mark(self) -> Mark:
        """Return a mark of the current moment, to `freeze` later only what comes after it."""
        self._collect()
        self.values.begin()
        self.forget_plain()
        return Mark(
            len(self._log), len(self._lowered), len(self._outcomes), len(self._compilations),
            len(self.values), self.counts.copy(), self._observation(), self.clock(),
        )  # fmt: skip

    def snapshot(self, since: Mark, calls: int, running: Iterable[LoweredSite] = ()) -> Recording:
        """Return what reports of progress need of what was collected since `since`.

        The first `calls` host calls are left out. Sites have the numbers that they have in the
        recorder; those in `running` are among them.
        """
        self._collect()
        for site in running:
            _ = self.numbers[site]
        with self._lock:
            known, threads, errors = tuple(self.numbers), (*self._thread_names,), (*self._errors,)
            counted = list(self._counted)
        new = self.counts.since(since.counts)
        return Recording(
            calls=self._log.rows(since.calls + calls),
            lowered=known,
            threads=threads,
            outcomes=(*self._earlier, *self._outcomes),
            runs={program: new.get(program, {}).get("runs", 0) for program in counted},
            not_kept=tuple(NotKept(*key, **more) for key, more in _pairs(new)),
            errors=errors,
            **new.get(_WHOLE, {}),
        )

    def touched(self, since: Mark) -> bool:
        """Whether programs with sites were lowered or run, or host calls made, since `since`."""
        self._collect()
        if len(self._log) > since.calls or len(self._lowered) > since.lowered:
            return True
        return any(
            {"runs", "calls"} & more.keys() for more in self.counts.since(since.counts).values()
        )

    def freeze(
        self,
        since: Mark | None = None,
        *,
        cells: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        ahead: bool = False,
        running: Sequence[tuple[Any, ...]] = (),
        code: tuple[int, int] | None = None,
        unfinished: Set[Program] = frozenset(),
    ) -> Recording:
        """Return what was collected since `since` (or from the start) as an immutable value.

        Args:
            since: see `mark`.
            cells: see `Recording.cells`.
            environment: see `Recording.environment`.
            ahead: see `Recording.ahead`.
            running: the fields of each `Recording.running`, with the site as the first.
            code: how long the recorded code ran, and when it ended; by default since `since`, and
                now.
            unfinished: programs of which a run may go on after the recording.
        """
        if since is not None and running:
            # A call is in the part of the log in which it began, and in the one in which it ends.
            passed_ns = self.clock() - since.at_ns
            running = [one for one in running if one[4] <= passed_ns]
        facts = cells, environment, ahead, running, code, unfinished
        if not backlogs:
            return self._frozen(since or BEGINNING, {}, *facts)
        (backlog,) = backlogs
        with backlog.lock:  # a call is left, or it has its row
            left = backlog.left(self, (since or BEGINNING).at_ns)
            return self._frozen(since or BEGINNING, left, *facts)

    def _frozen(
        self,
        since: Mark,
        left: Mapping[LoweredSite, int],
        cells: Sequence[str],
        environment: Mapping[str, str] | None,
        ahead: bool,
        running: Sequence[tuple[Any, ...]],
        code: tuple[int, int] | None,
        unfinished: Set[Program],
    ) -> Recording:
        self._collect()
        calls, new = self._log.rows(since.calls), self.counts.since(since.counts)
        for site, calls_left in left.items():
            if calls_left:
                new.setdefault(site, {})["left"] = calls_left
        with self._lock:
            known, errors, workers = list(self.numbers), (*self._errors,), self._workers.facts()
            stale, adrift = set(self._stale), set(self.adrift)
            runs = {p: new.get(p, {}).get("runs", 0) for p in self._counted}
        bound = {key: new[key]["bound"] for key in new if isinstance(key, Site)}
        not_kept = [(known[number], error, more) for (number, error), more in _pairs(new)]
        more = [key for key in new if isinstance(key, LoweredSite)]
        more += [*(site for site, *_ in running), *(site for site, *_ in not_kept)]
        lowered, calls = renumbered(known, calls, self._lowered[since.lowered :], more)
        place = {fact: number for number, fact in enumerate(lowered)}
        ran = {program for program, count in runs.items() if count}
        ran |= {lowered[number].program for number in np.unique(calls["lowered"]).tolist()}
        ran |= {site.program for site, *_ in (*not_kept, *running)}
        took_ns, ended_ns = code or (0, 0)
        if code is None and not ahead and since is not BEGINNING:
            took_ns = self.clock() - since.at_ns
        before, outcomes = self._outcomes[: since.outcomes], self._outcomes[since.outcomes :]
        compiled = {outcome.program for outcome in outcomes}
        earlier = [each for each in (*self._earlier, *before) if each.program in ran]
        adrift -= {one.site for one in (*lowered, *earlier, *outcomes)}
        lost = [site for site in bound if site in adrift and not ahead]
        eager = dict.fromkeys(one.site for one in lowered if one.program is None)
        missed = {program for program in runs if "unobserved" in new.get(program, {})}
        found = as_observed((*earlier, *outcomes), since, self._observation(), runs, missed)

        def made(kind: Any) -> Any:
            """Return the facts of a kind that are made of counts."""
            names = kind._fields[1:]
            for key, sums in new.items():
                if isinstance(key, LoweredSite | str) and not sums.keys().isdisjoint(names):
                    first = place[key] if isinstance(key, LoweredSite) else key
                    yield kind(first, **{name: sums[name] for name in names if name in sums})

        return Recording(
            bound=bound,
            lowered=tuple(lowered),
            outcomes=(
                *as_begun(
                    found, calls, lowered, since, runs, unfinished, [site for site, *_ in running]
                ),
                *without_program(lost, (site for site in eager if site in self.moved)),
            ),
            runs={p: count for p, count in runs.items() if p in compiled or p in ran},
            stale=frozenset(number for number, fact in enumerate(lowered) if fact in stale),
            calls=calls,
            threads=tuple(self._thread_names),
            errors=errors,
            not_kept=tuple(NotKept(place[site], error, **sums) for site, error, sums in not_kept),
            environment=dict(environment or {}),
            cells=tuple(cells),
            numbers=numbers_of(places_of(bound, [*lowered, *found], running)),
            compilations=tuple(self._compilations[since.compilations :]),
            sample_values=self.values.sample_values(since.sample_values, place, calls),
            not_finite=(*made(NotFinite),),
            not_finite_calls=self.values.marked(place, calls),
            ahead=ahead,
            running=tuple(Running(place[site], *rest) for site, *rest in running),
            workers=workers,
            queue=(*made(QueueUse),),
            masks=(*made(MaskUse),),
            objects=tuple(
                use._replace(nbytes=self._object_bytes[use.name]) for use in made(ObjectUse)
            ),
            wall_ns=took_ns,
            **new.get(_WHOLE, {}),
            late_ns=max(int(calls["end_ns"].max()) - ended_ns, 0) if ended_ns and len(calls) else 0,
        )

    def _collect(self) -> None:
        self._plain.collect()
        for log in native_logs:
            log.collect(self)

    def _enlist(self, name: str) -> int:
        self._thread_names.append(name)
        return len(self._thread_names) - 1


def _pairs(new: Mapping[Any, dict[str, int]]) -> list[tuple[tuple[int, int], dict[str, int]]]:
    """Return the counts of calls that were not kept, by the numbers of site and error."""
    return [(key, sums) for key, sums in new.items() if type(key) is tuple and "calls" in sums]


def _not_kept(sums: Mapping[Any, int]) -> int:
    return sum(number for (_, name), number in sums.items() if name == "calls")


class _ThreadEnd:
    """Notes the end of a thread, whose ident the next one may get."""

    def __init__(self, recorder: Callable[[], Recorder | None]) -> None:
        self._recorder = recorder

    def __del__(self) -> None:
        recorder = self._recorder()
        if recorder is not None:
            recorder.forget_plain()


class _Numbers(dict[LoweredSite, int]):
    """The number of every site called or lowered so far; a new site gets the next one."""

    def __init__(self, lock: threading.Lock) -> None:
        self._lock = lock

    def __missing__(self, lowered: LoweredSite) -> int:
        with self._lock:
            return self.setdefault(lowered, len(self))
