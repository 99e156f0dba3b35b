"""`Recorder`, the mutable object that collects the facts of a recording."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .._columns import ROW, CallLog, counted_since, renumbered
from .._facts import Compilation, LoweredSite, MaskUse, NotKept, Outcome, Program, Running, Site
from .._recording import Recording
from ._queue_use import QueueUses
from ._sample_values import Values
from ._site_counts import SiteCounts
from ._window import BEGINNING, Mark, Snapshot, as_observed
from ._workers import WorkerRows, Workers

DEFAULT_CAPACITY = 1_000_000  # host calls


class NativeLog(Protocol):
    """A log of host calls that code without Python writes."""

    def switch(self, recorder: Recorder | None) -> None:
        """Give what is logged to the recorder before, and log for `recorder` from now on."""

    def collect(self, recorder: Recorder) -> None:
        """Give what is logged to `recorder`, if it is the one that is logged for."""


native_logs: list[NativeLog] = []
COMPILED_THREAD = "compiled code"  # stands for all threads on which compiled code runs


class Recorder:
    """Collects facts from the callback stack, in any thread; `freeze` returns a `Recording`.

    Args:
        clock: returns nanoseconds; every start and end is read from it.
        capacity: the number of host calls to log; later ones are only counted, by site.
        sample_values: whether to keep values of the first calls of each site.
        observation: returns how often observing JAX's own callbacks has begun or ended: odd while
            it is on.

    Attributes:
        values: collects sample values and counts non-finite results.
        queue: counts what happens in the queue to queued crossings.
        masks: counts the batch elements of masked crossings, and those whose mask was true.
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
        self.values = Values(sample_values)
        self.queue = QueueUses()
        self.masks = SiteCounts()
        self.around: Callable[[LoweredSite, Callable], Callable] | None = None
        self._log = CallLog(capacity)
        self._crossings = itertools.count()
        self._bound: dict[Site, int] = {}  # how often
        self._lowered: list[LoweredSite] = []
        self._outcomes: list[Outcome] = []
        self._earlier: list[Outcome] = []  # of programs compiled before this recorder
        self._compilations: list[Compilation] = []
        self._runs: dict[Program, int] = {}
        self._unobserved: dict[Program, int] = {}  # runs
        self._errors: dict[str, int] = {}
        self._stale: set[LoweredSite] = set()
        self._known: dict[LoweredSite, int] = {}  # everything called or lowered so far
        self._current_thread = threading.local()  # .number: index into _thread_names
        self._thread_names: list[str] = []
        self._workers = Workers(self._enlist)
        self._lock = threading.Lock()  # for the tables only, never held while user code runs

    def bound(self, site: Site) -> None:
        """Record that a site was bound: traced, or about to be called eagerly."""
        with self._lock:
            self._bound[site] = self._bound.get(site, 0) + 1

    def lowered(self, lowered: LoweredSite) -> None:
        """Record that a site was lowered into a program."""
        self._number(lowered)
        self._lowered.append(lowered)

    def compiled(self, outcome: Outcome) -> None:
        """Record what a compiled program made of one of the sites bound for it."""
        self._outcomes.append(outcome)

    def stands(self, outcome: Outcome) -> None:
        """Record an outcome of a program compiled earlier; it is reported if the program runs."""
        self._earlier.append(outcome)

    def took(self, compilation: Compilation) -> None:
        """Record the compilation of a program, with times."""
        self._compilations.append(compilation)

    def counts(self, program: Program) -> None:
        """Record that `ran` will be called for each run of a program, from the first one on."""
        with self._lock:
            self._runs.setdefault(program, 0)

    def ran(self, program: Program) -> None:
        """Record one run of a program."""
        with self._lock:
            if program in self._runs:
                self._runs[program] += 1
                if not self._observation() % 2:
                    self._unobserved[program] = self._unobserved.get(program, 0) + 1

    def lost_count(self, program: Program) -> None:
        """Record that the runs of a program are no longer known."""
        with self._lock:
            self._runs.pop(program, None)

    def stale(self, lowered: LoweredSite) -> None:
        """Record that a program called a registration that was replaced under the same name."""
        with self._lock:
            self._stale.add(lowered)

    def called(
        self,
        lowered: LoweredSite,
        version: int,
        start: int,
        end: int,
        error: str | None = None,
        queued: int = 0,
    ) -> int:
        """Record one host call without batch elements; return the number of its crossing."""
        number = self._known.get(lowered)
        if number is None:
            number = self._number(lowered)
        try:
            thread = self._current_thread.number
        except AttributeError:
            thread = self._thread()
        code = 0 if error is None else self._error(error)
        crossing = next(self._crossings)
        self._log.append(start, end, number, crossing, thread, version, code, queued)
        return crossing

    def called_elements(
        self,
        lowered: LoweredSite,
        version: int,
        elements: np.ndarray,
        stamps: Sequence[int],
        failed: int | None = None,
        error: str = "",
        queued: int = 0,
    ) -> int:
        """Record all host calls of one crossing that looped over batch elements.

        Args:
            lowered: the site.
            version: number of the host function's body that ran.
            elements: row-major batch element numbers in the order of the calls.
            stamps: the clock before the first call and after each call: one more than calls.
            failed: index of the call that failed, if one did.
            error: the error that it raised.
            queued: the time from the crossing to the first call, if it was in the queue.

        Returns:
            The number of the crossing.
        """
        count = len(stamps) - 1
        crossing = next(self._crossings)
        if count == 0:  # no batch elements
            return crossing
        times = np.array(stamps, np.int64)
        rows = np.zeros(count, ROW)
        rows["start_ns"] = times[:-1]
        rows["end_ns"] = times[1:]
        rows["lowered"] = self._number(lowered)
        rows["crossing"] = crossing
        rows["element"] = elements[:count]
        rows["thread"] = self._thread()
        rows["version"] = version
        rows["queued_ns"][0] = queued
        if failed is not None and failed < count:  # an interrupt may hit between two calls
            rows["error"][failed] = self._error(error)
        self._log.append_block(rows)
        return crossing

    def crossing(self) -> int:
        """Return the number of a new crossing, for `called_by_workers`."""
        return next(self._crossings)

    def called_by_workers(
        self, lowered: LoweredSite, version: int, crossing: int, part: WorkerRows, first: bool
    ) -> None:
        """Record host calls that a worker made for one crossing, the first or others of it."""
        with self._lock:
            rows = self._workers.rows(part, version)
        rows["lowered"], rows["crossing"] = self._number(lowered), crossing
        for place, error in part.errors.items():
            rows["error"][place] = self._error(error)
        self._log.append_block(rows, first)

    def refused(self, lowered: LoweredSite, crossing: int, element: int, error: str) -> None:
        """Record an error of a worker's call that was recorded before its result was checked."""
        self._log.fail(self._number(lowered), crossing, element, self._error(error))

    def called_compiled(
        self, lowered: LoweredSite, versions: np.ndarray, starts: np.ndarray, ends: np.ndarray
    ) -> None:
        """Record crossings that compiled code made for one site.

        It measures whole crossings, so each batch element gets an equal share of the time.

        Args:
            lowered: the site.
            versions: the version of the host function's body in each crossing.
            starts: when each crossing began.
            ends: when each crossing ended.
        """
        count = lowered.elements or 1
        kept = min(self._log.room() // count, len(starts))
        rows = np.zeros((kept, count), ROW)
        share = (ends[:kept] - starts[:kept]) / count
        for field, edge in (("start_ns", 0), ("end_ns", 1)):
            passed = (share[:, None] * np.arange(edge, count + edge)).astype(np.int64)
            rows[field] = starts[:kept, None] + passed
        rows["lowered"] = self._number(lowered)
        crossings = np.fromiter(itertools.islice(self._crossings, kept), np.uint32, kept)
        rows["crossing"] = crossings[:, None]
        rows["element"] = -1 if lowered.elements is None else np.arange(count)
        rows["thread"] = self._compiled_thread()
        rows["version"] = versions[:kept, None]
        self._log.append_block(rows.reshape(-1))
        if kept < len(starts):
            self.lost_compiled(lowered, len(starts) - kept, int((ends - starts)[kept:].sum()))

    def lost_compiled(self, lowered: LoweredSite, crossings: int, host_ns: int) -> None:
        """Count crossings that compiled code made for one site when the log was full."""
        calls = crossings * (lowered.elements or 1)
        self._log.count(NotKept(self._number(lowered), 0, calls, crossings, host_ns))

    def mark(self) -> Mark:
        """Return a mark of the current moment, to `freeze` later only what comes after it."""
        self._collect()
        with self._lock:
            bound, runs, unobserved = dict(self._bound), dict(self._runs), dict(self._unobserved)
        self.values.begin()
        return Mark(
            len(self._log), bound, len(self._lowered), len(self._outcomes), runs,
            self._log.not_kept(), len(self._compilations), len(self.values), self.values.counted(),
            self._observation(), unobserved, self.queue.counts(), self.masks.counts(),
            self.clock(),
        )  # fmt: skip

    def snapshot(self, since: Mark, calls: int, running: Iterable[LoweredSite] = ()) -> Snapshot:
        """Return what was collected since `since`, leaving out its first `calls` host calls.

        The snapshot's sites include those in `running`.
        """
        self._collect()
        for site in running:
            self._number(site)
        with self._lock:
            known, threads = list(self._known), list(self._thread_names)
            runs = {p: n - since.runs.get(p, 0) for p, n in self._runs.items()}
        return Snapshot(
            self._log.rows(since.calls + calls),
            known,
            threads,
            [*self._earlier, *self._outcomes],
            runs,
            counted_since(self._log.not_kept(), since.not_kept),
        )

    def touched(self, since: Mark) -> bool:
        """Whether programs with sites were lowered or run, or host calls made, since `since`."""
        self._collect()
        with self._lock:
            ran = any(count != since.runs.get(p, 0) for p, count in self._runs.items())
        called = len(self._log) > since.calls or self._log.not_kept() != since.not_kept
        return called or ran or len(self._lowered) > since.lowered

    def freeze(
        self,
        since: Mark | None = None,
        *,
        cells: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        ahead: bool = False,
        running: Sequence[tuple[Any, ...]] = (),
        left: Mapping[LoweredSite, int] | None = None,
    ) -> Recording:
        """Return what was collected since `since` (or from the start) as an immutable value.

        Args:
            since: see `mark`.
            cells: see `Recording.cells`.
            environment: see `Recording.environment`.
            ahead: see `Recording.ahead`.
            running: the fields of each `Recording.running`, with the site as the first.
            left: the number of host calls that each site has left in the queue.
        """
        self._collect()
        since = since or BEGINNING
        calls, all_not_kept = self._log.rows(since.calls), self._log.not_kept()
        with self._lock:
            known = list(self._known)
            bound = {site: count - since.bound.get(site, 0) for site, count in self._bound.items()}
            errors, workers = tuple(self._errors), self._workers.facts()
            stale = set(self._stale)
            runs = {p: n - since.runs.get(p, 0) for p, n in self._runs.items()}
            unobserved = dict(self._unobserved)
        not_kept = counted_since(all_not_kept, since.not_kept)
        queue = self.queue.since(since.queue, left or {})
        masks = self.masks.since(since.masks)
        more = [
            *self.values.changed(since.not_finite),
            *(site for site, *_ in running),
            *queue,
            *masks,
        ]
        more += [known[one.lowered] for one in not_kept]
        lowered, calls = renumbered(known, calls, self._lowered[since.lowered :], more)
        place = {fact: number for number, fact in enumerate(lowered)}
        ran = {program for program, count in runs.items() if count}
        ran |= {lowered[number].program for number in np.unique(calls["lowered"]).tolist()}
        ran |= {known[one.lowered].program for one in not_kept}
        outcomes = self._outcomes[since.outcomes :]
        compiled = {outcome.program for outcome in outcomes}
        before = (*self._earlier, *self._outcomes[: since.outcomes])
        earlier = [outcome for outcome in before if outcome.program in ran]
        return Recording(
            bound={site: count for site, count in bound.items() if count},
            lowered=tuple(lowered),
            outcomes=as_observed(
                (*earlier, *outcomes), since, self._observation(), runs, unobserved
            ),
            runs={p: count for p, count in runs.items() if p in compiled or p in ran},
            stale=frozenset(number for number, fact in enumerate(lowered) if fact in stale),
            calls=calls,
            threads=tuple(self._thread_names),
            errors=errors,
            overflow=sum(one.calls for one in not_kept),
            not_kept=tuple(one._replace(lowered=place[known[one.lowered]]) for one in not_kept),
            environment=dict(environment or {}),
            cells=tuple(cells),
            compilations=tuple(self._compilations[since.compilations :]),
            sample_values=self.values.sample_values(since.sample_values, place),
            not_finite=self.values.unsound(since.not_finite, place),
            ahead=ahead,
            running=tuple(Running(place[site], *rest) for site, *rest in running),
            workers=workers,
            queue=tuple(use._replace(lowered=place[site]) for site, use in queue.items()),
            masks=tuple(MaskUse(place[site], *counts) for site, counts in masks.items()),
        )

    def _number(self, lowered: LoweredSite) -> int:
        with self._lock:
            return self._known.setdefault(lowered, len(self._known))

    def _thread(self) -> int:
        # Not threading.get_ident(): a new thread may get the ident of one that has ended.
        number = getattr(self._current_thread, "number", None)
        if number is None:
            with self._lock:
                number = self._enlist(threading.current_thread().name)
                self._current_thread.number = number
        return number

    def _collect(self) -> None:
        for log in native_logs:
            log.collect(self)

    def _compiled_thread(self) -> int:
        """Return the number of the entry that stands for the threads of compiled code."""
        with self._lock:
            if COMPILED_THREAD not in self._thread_names:
                self._enlist(COMPILED_THREAD)
            return self._thread_names.index(COMPILED_THREAD)

    def _enlist(self, name: str) -> int:
        self._thread_names.append(name)
        return len(self._thread_names) - 1

    def _error(self, error: str) -> int:
        with self._lock:
            return self._errors.setdefault(error, len(self._errors) + 1)
