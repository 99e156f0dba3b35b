"""Add up the host calls of a recording by call site and program, in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ...recording import COMPILED_THREAD, Outcome, Program, Recording, SampleValues, Site
from ._capabilities import ends_runs, reached_but_not_made

_HALF = np.uint64(32)  # bits of each number where two are packed into one


class Stopped(NamedTuple):
    """The crossings in which a host function raised before the last batch element."""

    element: int  # at which the first of them stopped
    crossings: int  # that stopped


class Counts:
    """The totals that the summaries of call sites are built from.

    Attributes:
        recording: the recording that is added up.
        calls: host calls by index into `Recording.lowered`.
        elsewhere: those of them that ran in workers of executors or in compiled code.
        numbers: by site, the indices of its entries in `Recording.lowered`.
        outcomes: by site, its outcomes.
        programs: knows which programs ran, and failed.
    """

    def __init__(self, recording: Recording) -> None:
        calls, count = recording.calls, len(recording.lowered)
        self.recording = recording
        self.numbers: dict[Site, list[int]] = {}
        self.outcomes: dict[Site, list[Outcome]] = {}
        for number, fact in enumerate(recording.lowered):
            self.numbers.setdefault(fact.site, []).append(number)
        for outcome in recording.outcomes:
            self.outcomes.setdefault(outcome.site, []).append(outcome)
        self.calls = np.bincount(calls["lowered"], minlength=count)
        for one in recording.not_kept:
            self.calls[one.lowered] += one.calls
        self._host_ns = np.zeros(count, np.int64)
        # Not bincount with weights: it adds in floating point, which rounds.
        np.add.at(self._host_ns, calls["lowered"], calls["end_ns"] - calls["start_ns"])
        for one in recording.not_kept:
            self._host_ns[one.lowered] += one.host_ns
        not_made = reached_but_not_made(recording)
        self._not_made = not_made + Counter(one.lowered for one in recording.running)
        self._crossings, self._errors = self._by_site(calls)
        self._failed = _failed_crossings(calls)
        self._in_workers = _InWorkers(recording)
        self.elsewhere = self._in_workers.calls + _compiled(recording)
        self._sample_values: dict[Site, list[tuple[SampleValues, int | None]]] = {}
        for sample in recording.sample_values:
            fact = recording.lowered[sample.lowered]
            self._sample_values.setdefault(fact.site, []).append((sample, fact.shard))
        reached = self.calls.copy()
        for number, calls_not_made in not_made.items():
            reached[number] += calls_not_made
        self.programs = Programs(recording, reached)

    def _by_site(self, calls: np.ndarray) -> tuple[dict[Site, int], dict[Site, tuple[str, ...]]]:
        """Return the number of crossings and the distinct errors, in order, of each site."""
        sites = list(self.numbers)
        places = {site: place for place, site in enumerate(sites)}
        whose = np.zeros(len(self.recording.lowered), np.uint64)
        for place, numbers in enumerate(self.numbers.values()):
            whose[numbers] = place
        whose = whose[calls["lowered"]] << _HALF
        trips = _distinct(whose | calls["crossing"]) >> _HALF
        crossings = np.bincount(trips.astype(np.int64), minlength=len(sites))
        failed = np.flatnonzero(calls["error"])
        pairs, first = np.unique(whose[failed] | calls["error"][failed], return_index=True)
        errors: list[dict[str, None]] = [{} for _ in sites]
        for pair in pairs[np.argsort(first)].tolist():
            place, code = divmod(pair, 1 << 32)
            errors[place][self.recording.errors[code - 1]] = None
        for one in self.recording.not_kept:
            place = places[self.recording.lowered[one.lowered].site]
            crossings[place] += one.crossings
            if one.error:
                errors[place][self.recording.errors[one.error - 1]] = None
        return (
            dict(zip(sites, crossings.tolist(), strict=True)),
            dict(zip(sites, map(tuple, errors), strict=True)),
        )

    def calls_of(self, site: Site) -> int:
        """Count the host calls of a site."""
        return sum(int(self.calls[number]) for number in self.numbers.get(site, ()))

    def eager_calls(self, site: Site) -> int:
        """Count the host calls that eager code made."""
        lowered = self.recording.lowered
        return self.begun(n for n in self.numbers.get(site, ()) if lowered[n].program is None)

    def called_unseen(self, site: Site) -> bool:
        """Whether programs called it that were compiled before the recording."""
        seen = {outcome.program for outcome in self.outcomes.get(site, ())} | {None}
        lowered = self.recording.lowered
        return any(
            self.calls[n] and lowered[n].program not in seen for n in self.numbers.get(site, ())
        )

    def begun(self, numbers: Iterable[int]) -> int:
        """Count the host calls of some entries, also those that were reached but not made."""
        return sum(int(self.calls[number]) + self._not_made[number] for number in numbers)

    def stopped(self, numbers: Iterable[int], each: int) -> Stopped | None:
        """Return where crossings of some entries ended early; None if none did.

        Args:
            numbers: the entries.
            each: the number of host calls of a complete crossing.
        """
        wanted = set(numbers)
        found = [
            element
            for (lowered, _), (element, made) in self._failed.items()
            if lowered in wanted and made < each
        ]
        return Stopped(found[0], len(found)) if found else None

    def crossings(self, site: Site) -> int:
        """Count the crossings of a site."""
        return self._crossings.get(site, 0)

    def host_ns(self, numbers: Iterable[int]) -> int:
        """Return the time in the host function, in ns, summed over the calls of some entries."""
        return sum(int(self._host_ns[number]) for number in numbers)

    def wall_ns(self, numbers: Iterable[int]) -> int:
        """Return the wall time, in ns, of crossings of some entries whose calls ran in workers.

        0 if not all of their calls did and have a row, or if the program does not wait for them.
        """
        own = list(numbers)
        waits = all(ends_runs(self.recording.lowered[number]) for number in own)
        return self._in_workers.wall_ns(own, self.calls) if waits else 0

    def errors(self, site: Site) -> tuple[str, ...]:
        """Return the distinct errors that calls of a site raised."""
        return self._errors.get(site, ())

    def sample_values(self, site: Site) -> tuple[tuple[SampleValues, int | None], ...]:
        """Return the sample values of a site, sorted by shard: shards run in any order."""
        own = self._sample_values.get(site, ())
        return tuple(sorted(own, key=lambda pair: -1 if pair[1] is None else pair[1]))


def _distinct(pairs: np.ndarray) -> np.ndarray:
    # Not np.unique: since numpy 2.3 it hashes, which takes ten times as long for a million.
    ordered = np.sort(pairs)
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


def _failed_crossings(calls: np.ndarray) -> dict[tuple[int, int], tuple[int, int]]:
    """Return the failed crossings that loop over batch elements, in the order of the log.

    By entry and crossing: the first element that failed, and how many calls were made.
    """
    failed = calls[(calls["error"] > 0) & (calls["element"] >= 0)]
    own = calls[np.isin(calls["crossing"], failed["crossing"])] if failed.size else failed
    made = Counter(zip(own["lowered"].tolist(), own["crossing"].tolist(), strict=True))
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for lowered, crossing, element in failed[["lowered", "crossing", "element"]].tolist():
        found.setdefault((lowered, crossing), (element, made[lowered, crossing]))
    return found


def _failing_crossings(recording: Recording) -> list[int]:
    """Count the failed crossings of each lowered site; without rows, count failed calls."""
    rows = recording.calls[recording.calls["error"] > 0]
    pairs = _distinct(rows["lowered"].astype(np.uint64) << _HALF | rows["crossing"]) >> _HALF
    failed = np.bincount(pairs.astype(np.int64), minlength=len(recording.lowered))
    for one in recording.not_kept:
        failed[one.lowered] += one.calls * (one.error > 0)
    return failed.tolist()


class _InWorkers:
    """The calls in workers of executors: how many each entry has, and the spans of crossings."""

    def __init__(self, recording: Recording) -> None:
        calls, count = recording.calls, len(recording.lowered)
        workers = [worker.thread for worker in recording.workers]
        rows = calls[np.isin(calls["thread"], workers)] if workers else calls[:0]
        self.calls = np.bincount(rows["lowered"], minlength=count)
        trips = rows["lowered"].astype(np.uint64) << _HALF | rows["crossing"]
        found, whose = np.unique(trips, return_inverse=True)
        self._starts = np.full(len(found), np.iinfo(np.int64).max)
        self._ends = np.zeros_like(self._starts)
        np.minimum.at(self._starts, whose, rows["start_ns"] - rows["queued_ns"])
        np.maximum.at(self._ends, whose, rows["end_ns"])
        # Crossings are sorted by entry: those of entry i are from bound i to bound i + 1.
        self._bounds = np.searchsorted(found >> _HALF, np.arange(count + 1, dtype=np.uint64))

    def wall_ns(self, own: list[int], calls: np.ndarray) -> int:
        """Return the time of the crossings of entries; 0 if some of their `calls` ran elsewhere."""
        if not self.calls[own].sum() or (self.calls[own] != calls[own]).any():
            return 0
        places = np.concatenate([np.arange(*self._bounds[n : n + 2]) for n in own])
        places = places[np.argsort(self._starts[places])]
        starts, ends = self._starts[places], np.maximum.accumulate(self._ends[places])
        gaps = np.maximum(starts[1:] - ends[:-1], 0)  # none where shards cross side by side
        return int(ends[-1] - starts[0] - gaps.sum())


def _compiled(recording: Recording) -> np.ndarray:
    """Count the calls of each entry that ran in compiled code, without Python."""
    if COMPILED_THREAD not in recording.threads:
        return np.zeros(len(recording.lowered), np.int64)
    rows = recording.calls[recording.calls["thread"] == recording.threads.index(COMPILED_THREAD)]
    return np.bincount(rows["lowered"], minlength=len(recording.lowered))


class Programs:
    """Which programs ran, and failed.

    Attributes:
        called: the programs that made a call.
    """

    def __init__(self, recording: Recording, calls: np.ndarray) -> None:
        self.called: set[Program] = set()
        self._failures: dict[Program, Counter[int]] = {}  # failing crossings by lowered site
        self._recording = recording
        self._calls: Counter[tuple[Program, Site]] = Counter()
        self._outcomes: dict[Program, list[Outcome]] = {}
        self._runs: dict[Program, int | None] = {}
        failed = _failing_crossings(recording)
        for number, (fact, count) in enumerate(zip(recording.lowered, calls.tolist(), strict=True)):
            if fact.program is not None and count:
                self._calls[fact.program, fact.site] += count
                self.called.add(fact.program)
                if failed[number] and ends_runs(fact):
                    own = self._failures.setdefault(fact.program, Counter())
                    own[number] = failed[number]
        self._running = Counter(recording.lowered[one.lowered].program for one in recording.running)
        for outcome in recording.outcomes:
            self._outcomes.setdefault(outcome.program, []).append(outcome)

    def runs(self, program: Program) -> int | None:
        """Count the runs of a program from the calls that every run makes, else as recorded."""
        if program not in self._runs:
            self._runs[program] = self._find_runs(program)
        return self._runs[program]

    def failed(self, program: Program) -> bool:
        """Whether a call of a program raised."""
        return program in self._failures

    def in_part(self, program: Program) -> bool:
        """Whether the recording lacks calls of a run of a program."""
        ran = self._recording.runs.get(program) or program in self.called
        lacks = ran and not all(calls for calls, _ in self._calls_and_each_run(program))
        return bool(self._running[program] or lacks)

    def failures(self, program: Program) -> tuple[int, int]:
        """Return how many runs of a program failed, at least and at most.

        A failing crossing ends its run; failing crossings of several callbacks may have ended the
        same run.
        """
        own = self._failures.get(program, {}).values()
        return max(own, default=0), sum(own)

    def completed(self, program: Program) -> tuple[int, int | None]:
        """Return how many runs of a program completed, at least and at most; None: unknown.

        JAX does not report failed runs of a program without effects. The calls that every run
        makes reveal them.
        """
        least, most = self.failures(program)
        reported = self._recording.runs.get(program)
        begun = self._begun(program)
        total = max(reported or 0, begun)
        low = max(total - most - self._running[program], 0)
        high = total - least if begun == total else reported
        if reported is not None and high is not None:
            high = min(high, reported)
        return low, high

    def _begun(self, program: Program) -> int:
        """Return the smallest number of runs that can have made the recorded calls."""
        pairs = self._calls_and_each_run(program)
        return max((-(-calls // each_run) for calls, each_run in pairs), default=0)

    def _calls_and_each_run(self, program: Program) -> list[tuple[int, int]]:
        """Return, for each site that every run calls equally often, its calls, and how often."""
        compiled: dict[Site, list[int | None]] = {}
        for outcome in self._outcomes.get(program, ()):
            compiled.setdefault(outcome.site, []).append(outcome.compiled)
        return [
            (self._calls[program, site], sum(filter(None, counts)))
            for site, counts in compiled.items()
            if None not in counts and any(counts)
        ]

    def _find_runs(self, program: Program) -> int | None:
        if self._recording.ahead:
            return 1
        if program not in self._failures:
            pairs = self._calls_and_each_run(program)
            found = {None if calls % each_run else calls // each_run for calls, each_run in pairs}
            if found:  # an unfinished run has made only some of its calls, or only at some sites
                return found.pop() if len(found) == 1 else None
        return self._recording.runs.get(program)


def percentiles_95(recording: Recording) -> dict[Site, int]:
    """Return the 95th percentile of the durations of each site's calls, in ns."""
    calls = recording.calls
    places = {site: place for place, site in enumerate({f.site: 0 for f in recording.lowered})}
    if not len(calls):
        return {}
    whose = np.array([places[fact.site] for fact in recording.lowered])[calls["lowered"]]
    order = np.argsort(whose, kind="stable")
    durations = (calls["end_ns"] - calls["start_ns"])[order]
    counts = np.bincount(whose, minlength=len(places))
    parts = np.split(durations, np.cumsum(counts)[:-1])
    pairs = zip(places, parts, strict=True)
    return {site: int(np.percentile(part, 95)) for site, part in pairs if len(part)}
