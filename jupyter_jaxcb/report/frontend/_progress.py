"""Report the progress of a running cell."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from ...recording import LoweredSite, Outcome, Program, Site
from ...recording import Recording as Snapshot
from ..summary import Rows, is_stop
from ..text import not_recorded
from ._columns import CallColumns, call_columns
from ._documents import ProgressView, RunningView
from ._site_view import SiteProgress, Where, unfinished

MAX_SITES = 60
MAX_ROWS = 20_000  # host calls sent per update, to limit the load on the kernel
LONG_NS = 200_000_000  # a call that has been running for this long is listed
_RATE_NS = 1_000_000_000  # the rate is that of the last second


class Progress:
    """Running totals of a recorder, updated snapshot by snapshot.

    Args:
        start_ns: time of the recorder's clock when the cell began.
        where: names places.
    """

    def __init__(self, start_ns: int, where: Where = attrgetter("where")) -> None:
        self.seen = 0  # rows of the log that were added
        self._start_ns = start_ns
        self._where = where
        self._base_ns: int | None = None  # start of the first call
        self._not_sent = 0
        self._recorded = _totals(0)
        self._shown = _totals(0)
        self._recent: deque[tuple[int, int]] = deque()  # (time, calls so far)
        self._running_ns: dict[Site, int] = {}  # see `SiteProgress`

    def add(self, snapshot: Snapshot, running: Sequence[Any] = ()) -> CallColumns:
        """Add the rows of `snapshot` and return them as columns, with sites as variants.

        Args:
            snapshot: what was recorded since the last one.
            running: the unfinished host calls, read after the snapshot was taken. Their loops and
                chunks are recorded when they end; until then the calls that have returned count.
        """
        rows = snapshot.calls
        self.seen += len(rows)
        count = len(snapshot.lowered)
        stops = [0, *(n for n, error in enumerate(snapshot.errors, 1) if is_stop(error))]
        failed = rows["lowered"][~np.isin(rows["error"], stops)]
        taken = rows["end_ns"] - rows["start_ns"]
        self._recorded = _grown(self._recorded, count)
        self._recorded += (
            np.bincount(rows["lowered"], minlength=count),
            np.bincount(failed, minlength=count),
            np.bincount(rows["lowered"], weights=taken, minlength=count).astype(np.int64),
        )
        totals = self._recorded.copy()
        for one in snapshot.not_kept:
            failed_calls = one.calls * (one.error not in stops)
            totals[:, one.lowered] += one.calls, failed_calls, one.host_ns
        place = {fact: number for number, fact in enumerate(snapshot.lowered)}
        for call in running:
            if call.lowered in place:
                totals[:, place[call.lowered]] += call.returned, 0, call.returned_ns
        # A loop that ends between the snapshot and the look at what runs is in neither.
        self._shown = np.maximum(_grown(self._shown, count), totals)
        self._begin(rows, running)
        self._not_sent += max(len(rows) - MAX_ROWS, 0)
        variants = np.array([number for number, _ in _numbered(snapshot.lowered)], np.int64)
        return call_columns(rows[-MAX_ROWS:], variants)

    def _begin(self, rows: np.ndarray, running: Sequence[Any]) -> None:
        """Set the start of the first call, once there is one."""
        if self._base_ns is None:
            starts = [call.start_ns - call.returned_ns for call in running if call.start_ns]
            starts += [int(rows["start_ns"].min())] if len(rows) else []
            self._base_ns = min(starts, default=None)

    def since_first_ns(self, columns: CallColumns) -> int:
        """Return when `columns` begin, in ns since the first call."""
        return columns.base_ns - (self._base_ns or 0)

    def to_message(self, snapshot: Snapshot, now_ns: int, running: Sequence[Any]) -> dict[str, Any]:
        """Return the state as the JSON of a `ProgressView`.

        Args:
            snapshot: the snapshot that was added last.
            now_ns: time of the recorder's clock.
            running: unfinished host calls (lowered, batch element, thread, start_ns).
        """
        self._running_ns = {
            call.lowered.site: now_ns - call.start_ns
            for call in sorted(running, key=lambda call: call.start_ns or 0, reverse=True)
            if call.start_ns  # the longest one of a site comes last
        }
        not_kept = sum(one.calls for one in snapshot.not_kept)
        calls = int(self._shown[0].sum())
        sites = self.sites(snapshot.lowered)
        under_way = [call.lowered for call in running]
        known = dict.fromkeys([*(s.site for s in sites), *(one.site for one in under_way)])
        rows = Rows(known, self._where)
        expected = expected_calls(snapshot, self._shown[0], under_way)
        if self._shown[1].any():  # a run that failed has not made all of its calls
            expected = _UNKNOWN
        return ProgressView(
            elapsed_ns=now_ns - self._start_ns,
            since_first_ns=0 if self._base_ns is None else max(now_ns - self._base_ns, 0),
            calls=calls,
            rate=self._rate(now_ns, calls),
            expected=expected.calls,
            run=expected.run,
            running=tuple(
                _running(call, rows, now_ns)
                for call in running
                if now_ns - (call.start_ns or now_ns) > LONG_NS
            ),
            sites=tuple(unfinished(one, rows.where(one.site)) for one in sites[:MAX_SITES]),
            not_sent=self._not_sent + not_kept,
            not_observed=not_recorded(count) if (count := snapshot.not_observed) else "",
        ).to_json()

    def _rate(self, now_ns: int, calls: int) -> float:
        self._recent.append((now_ns, calls))
        while len(self._recent) > 2 and now_ns - self._recent[1][0] >= _RATE_NS:
            self._recent.popleft()
        when, before = self._recent[0]
        if when == now_ns:
            when, before = self._start_ns, 0
        return (calls - before) * 1e9 / max(now_ns - when, 1)

    def sites(self, lowered: Sequence[LoweredSite]) -> list[SiteProgress]:
        """Return the totals by site, in order of appearance; `lowered` is that last added."""
        numbered = _numbered(lowered)
        sites: dict[int, Site] = dict(numbered)
        own = np.array([number for number, _ in numbered], np.int64)
        totals = [
            np.bincount(own, weights=column, minlength=len(sites)).astype(np.int64).tolist()
            for column in self._shown
        ]
        return [
            SiteProgress(site, *row, running_ns=self._running_ns.get(site, 0))
            for site, *row in zip(sites.values(), *totals, strict=True)
        ]


def _running(call: Any, rows: Rows, now_ns: int) -> RunningView:
    return RunningView(
        function=call.lowered.site.function,
        where=rows.where(call.lowered.site),
        element=call.element,
        thread=call.thread,
        elapsed_ns=now_ns - call.start_ns,
    )


class Expected(NamedTuple):
    """How many host calls to expect."""

    calls: int | None  # of the runs begun so far, or of the run under way; None: unknown
    run: int = 0  # the number of the run under way; 0: `calls` are those of all runs


_UNKNOWN = Expected(None)
_FEW_RUNS = 2  # after more, such as those of a Python loop, nothing tells how many will follow


def expected_calls(
    snapshot: Snapshot, calls: np.ndarray, under_way: Sequence[LoweredSite]
) -> Expected:
    """Count the host calls to expect; they are unknown if that depends on data.

    A crossing of eager code counts as a run.

    Args:
        snapshot: holds outcomes and runs.
        calls: the calls so far, by lowered site.
        under_way: the lowered site of each unfinished call.
    """
    made: Counter[LoweredSite | Program] = Counter()
    running = Counter(one.program or one for one in under_way)
    for fact, count in zip(snapshot.lowered, calls.tolist(), strict=True):
        made[fact.program or fact] += count
    per_program = _calls_per_run(snapshot.outcomes)
    found: list[tuple[int, int, int]] = []  # calls of a run, runs, the run under way
    for one in {**made, **running}:
        is_eager = isinstance(one, LoweredSite)
        runs = 0 if is_eager else snapshot.runs.get(one, 0)
        if not (made[one] or running[one] or runs):
            continue
        per_run = (one.calls_each_time or 1) if is_eager else per_program.get(one)
        if per_run is None:
            return _UNKNOWN
        if per_run:
            begun, now = (made[one] + more for more in (running[one], running[one] > 0))
            found.append((per_run, max(runs, -(-begun // per_run)), -(-now // per_run)))
    if sum(runs for _, runs, _ in found) <= _FEW_RUNS:
        return Expected(sum(per_run * runs for per_run, runs, _ in found))
    ((per_run, _, run), *others) = found
    is_loop = per_run > 1 and run and not others
    return Expected(per_run, run) if is_loop else _UNKNOWN


def _calls_per_run(outcomes: Iterable[Outcome]) -> Mapping[Program, int | None]:
    found: dict[Program, int | None] = {}
    for outcome in outcomes:
        before, own = found.get(outcome.program, 0), outcome.compiled
        found[outcome.program] = None if before is None or own is None else before + own
    return found


def _numbered(lowered: Sequence[LoweredSite]) -> list[tuple[int, Site]]:
    """Number the site of each lowered site, in order of appearance."""
    numbers: dict[Site, int] = {}
    return [(numbers.setdefault(fact.site, len(numbers)), fact.site) for fact in lowered]


def _totals(count: int) -> np.ndarray:
    """Return zeros for the calls, errors and host time of `count` lowered sites."""
    return np.zeros((3, count), np.int64)


def _grown(totals: np.ndarray, count: int) -> np.ndarray:
    """Return `totals` with zeros for new lowered sites, `count` in all."""
    grown = _totals(count)
    grown[:, : totals.shape[1]] = totals
    return grown
