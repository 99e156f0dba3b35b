"""The host calls of a recording added up by site and program, all sites in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from ..recording import Outcome, Preview, Program, Recording, Site

_HALF = np.uint64(32)  # bits of a number in a pair of numbers


class Counts:
    """What the summaries of sites are made of.

    Attributes:
        recording: that is added up.
        calls: host calls by number in `Recording.lowered`.
        numbers: by site, the numbers of it.
        outcomes: by site, those of it.
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
        self._host_ns = np.zeros(count, np.int64)
        # Not bincount with weights: these are floating numbers, which round.
        np.add.at(self._host_ns, calls["lowered"], calls["end_ns"] - calls["start_ns"])
        self._running = Counter(one.lowered for one in recording.running)
        self._crossings, self._errors = self._by_site(calls)
        self._previews: dict[Site, list[tuple[Preview, int | None]]] = {}
        for preview in recording.previews:
            fact = recording.lowered[preview.lowered]
            self._previews.setdefault(fact.site, []).append((preview, fact.shard))
        self._programs = _Programs(recording, self.calls)

    def _by_site(self, calls: np.ndarray) -> tuple[dict[Site, int], dict[Site, tuple[str, ...]]]:
        """How many crossings each site had, and what its calls raised, in their order."""
        sites = list(self.numbers)
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
        return (
            dict(zip(sites, crossings.tolist(), strict=True)),
            dict(zip(sites, map(tuple, errors), strict=True)),
        )

    def calls_of(self, site: Site) -> int:
        """Host calls of a site."""
        return sum(int(self.calls[number]) for number in self.numbers.get(site, ()))

    def begun(self, numbers: Iterable[int]) -> int:
        """Host calls of some numbers, with those that had not come back in the end."""
        return sum(int(self.calls[number]) + self._running[number] for number in numbers)

    def crossings(self, site: Site) -> int:
        """Trips to the host that were made for a site."""
        return self._crossings.get(site, 0)

    def host_ns(self, site: Site) -> int:
        """Time in the host function, summed over the calls of a site."""
        return sum(int(self._host_ns[number]) for number in self.numbers.get(site, ()))

    def errors(self, site: Site) -> tuple[str, ...]:
        """What calls of a site raised, each once."""
        return self._errors.get(site, ())

    def previews(self, site: Site) -> tuple[tuple[Preview, int | None], ...]:
        """Values of the first calls of a site, by shard: these are called in any order."""
        own = self._previews.get(site, ())
        return tuple(sorted(own, key=lambda pair: -1 if pair[1] is None else pair[1]))

    def called(self, program: Program) -> bool:
        """Whether a program made any call."""
        return program in self._programs.called

    def failed(self, program: Program) -> bool:
        """Whether a call of a program raised."""
        return program in self._programs.failed

    def runs(self, program: Program) -> int | None:
        """How often a program ran: by the calls that every run makes, else as it was seen."""
        return self._programs.runs(program)


def _distinct(pairs: np.ndarray) -> np.ndarray:
    # Not np.unique: since numpy 2.3 it hashes, which takes ten times as long for a million.
    ordered = np.sort(pairs)
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    return ordered[fresh]


class _Programs:
    """Which programs ran, and failed."""

    def __init__(self, recording: Recording, calls: np.ndarray) -> None:
        self.called: set[Program] = set()
        self.failed: set[Program] = set()
        self._recording = recording
        self._calls: Counter[tuple[Program, Site]] = Counter()
        self._outcomes: dict[Program, list[Outcome]] = {}
        self._runs: dict[Program, int | None] = {}
        rows = recording.calls
        failed = np.bincount(rows["lowered"][rows["error"] > 0], minlength=len(calls))
        for fact, count, failures in zip(
            recording.lowered, calls.tolist(), failed.tolist(), strict=True
        ):
            if fact.program is not None and count:
                self._calls[fact.program, fact.site] += count
                self.called.add(fact.program)
                if failures:
                    self.failed.add(fact.program)
        for outcome in recording.outcomes:
            self._outcomes.setdefault(outcome.program, []).append(outcome)

    def runs(self, program: Program) -> int | None:
        if program not in self._runs:
            self._runs[program] = self._find_runs(program, self._outcomes.get(program, ()))
        return self._runs[program]

    def _find_runs(self, program: Program, outcomes: Sequence[Outcome]) -> int | None:
        if self._recording.ahead:
            return 1
        if program not in self.failed:
            compiled: dict[Site, list[int | None]] = {}
            for outcome in outcomes:
                compiled.setdefault(outcome.site, []).append(outcome.compiled)
            for site, counts in compiled.items():
                every_run = sum(count or 0 for count in counts)
                if None not in counts and every_run:
                    runs, more = divmod(self._calls[program, site], every_run)
                    return None if more else runs
        return self._recording.runs.get(program)
