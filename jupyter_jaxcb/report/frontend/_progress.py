"""How a cell that still runs is doing."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...recording import LoweredSite, Outcome, Program, Site, Snapshot
from ..summary import Rows
from ._columns import CallColumns, call_columns

MAX_SITES = 60
MAX_ROWS = 20_000  # host calls that one look hands on, to spare the kernel
_RATE_NS = 1_000_000_000  # calls a second are those of the last second


class SiteProgress(NamedTuple):
    """What a site has done so far."""

    site: Site
    calls: int
    errors: int
    host_ns: int


class Progress:
    """Adds up what a recorder hears, look by look.

    Args:
        start_ns: of the recorder's clock, when the cell began.
    """

    def __init__(self, start_ns: int) -> None:
        self.seen = 0  # rows of the log
        self._start_ns = start_ns
        self._base_ns: int | None = None  # start of the first call
        self._not_sent = 0
        self._calls = np.zeros(0, np.int64)  # by number of the lowered site, as the next two
        self._errors = np.zeros(0, np.int64)
        self._host_ns = np.zeros(0, np.int64)
        self._beyond = np.zeros((3, 0), np.int64)  # the same of calls that the log has not kept
        self._lately: deque[tuple[int, int]] = deque()  # (when, calls so far)

    def add(self, heard: Snapshot) -> CallColumns:
        """Adds the rows of `heard`; returns them as columns, whose variants count the sites."""
        rows = heard.calls
        self.seen += len(rows)
        count = len(heard.lowered)
        failed = rows["lowered"][rows["error"] > 0]
        taken = rows["end_ns"] - rows["start_ns"]
        self._calls = _plus(self._calls, np.bincount(rows["lowered"], minlength=count))
        self._errors = _plus(self._errors, np.bincount(failed, minlength=count))
        self._host_ns = _plus(
            self._host_ns, np.bincount(rows["lowered"], weights=taken, minlength=count)
        )
        self._beyond = np.zeros((3, count), np.int64)
        for one in heard.not_kept:
            failed_calls = one.calls * (one.error > 0)
            self._beyond[:, one.lowered] += one.calls, failed_calls, one.host_ns
        if self._base_ns is None and len(rows):
            self._base_ns = int(rows["start_ns"].min())
        self._not_sent += max(len(rows) - MAX_ROWS, 0)
        variants = np.array([number for number, _ in _numbered(heard.lowered)], np.int64)
        return call_columns(rows[-MAX_ROWS:], variants)

    def since_first_ns(self, columns: CallColumns) -> int:
        """When `columns` begin, counted from the first call."""
        return columns.base_ns - (self._base_ns or 0)

    def to_message(self, heard: Snapshot, now_ns: int, running: Sequence[Any]) -> dict[str, Any]:
        """The state as JSON.

        Args:
            heard: what was added last.
            now_ns: of the recorder's clock.
            running: host calls that have not come back (lowered, batch element, thread, start_ns).
        """
        not_kept = sum(one.calls for one in heard.not_kept)
        calls = self.seen + not_kept
        sites = self.sites(heard.lowered)
        under_way = [call.lowered for call in running]
        rows = Rows(dict.fromkeys([*(s.site for s in sites), *(one.site for one in under_way)]))
        return {
            "elapsed_ns": now_ns - self._start_ns,
            "calls": calls,
            "rate": self._rate(now_ns, calls),
            "expected": expected_calls(heard, self._calls + self._beyond[0], under_way),
            "running": [_running(call, rows, now_ns) for call in running],
            "sites": [
                {
                    "function": one.site.function,
                    "flavor": one.site.flavor,
                    "where": rows.where(one.site),
                    "line": one.site.line,
                    "column": one.site.column,
                    "calls": one.calls,
                    "errors": one.errors,
                    "host_ns": one.host_ns,
                }
                for one in sites[:MAX_SITES]
            ],
            "not_sent": self._not_sent + not_kept,
        }

    def _rate(self, now_ns: int, calls: int) -> float:
        self._lately.append((now_ns, calls))
        while len(self._lately) > 2 and now_ns - self._lately[1][0] >= _RATE_NS:
            self._lately.popleft()
        when, before = self._lately[0]
        if when == now_ns:
            when, before = self._start_ns, 0
        return (calls - before) * 1e9 / max(now_ns - when, 1)

    def sites(self, lowered: Sequence[LoweredSite]) -> list[SiteProgress]:
        """By site, in the order they came; `lowered` as it was added last."""
        numbered = _numbered(lowered)
        sites: dict[int, Site] = dict(numbered)
        own = np.array([number for number, _ in numbered], np.int64)
        totals = [
            np.bincount(own, weights=column + more, minlength=len(sites)).astype(np.int64).tolist()
            for column, more in zip(
                (self._calls, self._errors, self._host_ns), self._beyond, strict=True
            )
        ]
        return [
            SiteProgress(site, *row) for site, *row in zip(sites.values(), *totals, strict=True)
        ]


def _running(call: Any, rows: Rows, now_ns: int) -> dict[str, Any]:
    return {
        "function": call.lowered.site.function,
        "where": rows.where(call.lowered.site),
        "element": call.element,
        "thread": call.thread,
        "elapsed_ns": now_ns - call.start_ns,
    }


def expected_calls(
    heard: Snapshot, calls: np.ndarray, under_way: Iterable[LoweredSite]
) -> int | None:
    """Host calls of the program runs that were begun so far; None where that depends on data.

    Args:
        heard: outcomes and runs.
        calls: so far, by number of the lowered site.
        under_way: the lowered site of each call that has not come back.
    """
    total = sum(one.program is None for one in under_way)
    made = dict.fromkeys((fact.program for fact in heard.lowered if fact.program), 0)
    for fact, count in zip(heard.lowered, calls.tolist(), strict=True):
        if fact.program is None:
            total += count  # eager: what was called was to be called
        else:
            made[fact.program] += count
    a_run = _calls_of_a_run(heard.outcomes)
    for program, so_far in made.items():
        runs = heard.runs.get(program, 0)
        if not so_far and not runs:
            continue
        own = a_run.get(program)
        if own is None:
            return None
        total += own * max(runs, -(-so_far // own) if own else 0)
    return total


def _calls_of_a_run(outcomes: Iterable[Outcome]) -> Mapping[Program, int | None]:
    found: dict[Program, int | None] = {}
    for outcome in outcomes:
        before, own = found.get(outcome.program, 0), outcome.compiled
        found[outcome.program] = None if before is None or own is None else before + own
    return found


def _numbered(lowered: Sequence[LoweredSite]) -> list[tuple[int, Site]]:
    """The number of the site of each, in the order they came."""
    numbers: dict[Site, int] = {}
    return [(numbers.setdefault(fact.site, len(numbers)), fact.site) for fact in lowered]


def _plus(total: np.ndarray, more: np.ndarray) -> np.ndarray:
    grown = np.zeros(len(more), np.int64)
    grown[: len(total)] = total
    return grown + more.astype(np.int64)
