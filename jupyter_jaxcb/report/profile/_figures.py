"""The figures of a profile, and how they are named: `KINDS` has one row for each kind of part."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...recording import (
    COMPILED_THREAD,
    OBSERVED,
    Part,
    PartKind,
    Profile,
    Recording,
    Unknown,
    on_one_line,
)
from ..summary import counted, shorten, time_words

_EVENTS = 4  # a run that is not longer than so many events shows what they cost
# The share of the crossings of JAX's own callbacks that it takes to observe them: in programs that
# were compiled before the block, and in others (measured, on machines of different speed).
_OBSERVING_OLD, _OBSERVING = 0.35, 0.12
_NAMED = 4  # kinds in the headline
_LONGEST = 60  # characters of a name
_SMALL = 0.02  # share of a kind that is not named there
_COSTLY = 0.1  # share of the cost of profiling that changes the picture
_NOTICED_NS = 1_000_000  # less is not worth a note
_PLURALS = {"copy": "copies"}
_WHY_OFF: dict[str, str] = {
    Unknown.EVENTS: (
        ": there were too many events. To read them slowed the rest of the block down. Profile "
        "fewer steps."
    ),
    Unknown.READING: (
        ": the memory of the process grew, so the events were read, to see how many there are."
    ),
    Unknown.STOPPED: ": the program stopped it with jax.profiler.stop_trace().",
    Unknown.STARTING: ": JAX had no backends before, and the profiler starts when it has.",
    Unknown.OTHER: ": another one was running. Call jax.profiler.stop_trace() first.",
}


class Kind(NamedTuple):
    """How a kind of part is named, drawn and counted."""

    words: str
    fill: str  # a character of the bar in text, which the rows below it repeat
    color: str  # of the bar in HTML; distinct with any color vision, on light and on dark
    counted: str = ""  # what the count of a part counts; empty: it is not shown


KINDS = {  # in the order of the bar
    PartKind.HOST: Kind("host functions", "█", "#4477aa", "call"),
    PartKind.CROSSING: Kind("crossings", "▓", "#66ccee", "crossing"),
    PartKind.WAITING: Kind("full queues", "w", "#882255"),
    PartKind.COPY: Kind("copies", "▚", "#aa3377", "copy"),
    PartKind.XLA: Kind("XLA", "▒", "#ccbb44", "run"),
    PartKind.COMPILATION: Kind("compilation", "c", "#228833", "time"),
    PartKind.DISPATCH: Kind("dispatch", "d", "#44aa99", "run"),
    PartKind.PYTHON: Kind("Python outside of JAX", "░", "#ee6677"),
    PartKind.QUEUED: Kind("queued host functions", "q", "#6699cc", "call"),
    PartKind.IDLE: Kind("idle", "·", "#bbbbbb"),
    PartKind.UNKNOWN: Kind("not profiled", "?", "#777777"),
}


def count_words(part: Part) -> str:
    """Return ``900 calls``; empty if the part is not counted."""
    noun = KINDS[part.kind].counted
    if not noun or not part.times:
        return ""
    return f"{part.times:,} {noun if part.times == 1 else _PLURALS.get(noun, f'{noun}s')}"


class Figures(NamedTuple):
    """A recording with a profile."""

    recording: Recording
    profile: Profile

    @staticmethod
    def of(recording: Recording) -> Figures | None:
        """Return the figures of a recording; None if it has no profile."""
        profile = recording.profile
        return None if profile is None else Figures(recording, profile)

    @property
    def kinds(self) -> list[tuple[PartKind, int]]:
        """The kinds that took time, and how much, in the order of the bar."""
        totals = [(kind, self.profile.of_kind(kind)) for kind in KINDS]
        present = {part.kind for part in self.profile.parts}
        return [(kind, total) for kind, total in totals if total or kind in present]

    def parts(self, kind: PartKind) -> list[Part]:
        """Return the parts of a kind, longest first."""
        return [part for part in self.profile.parts if part.kind == kind]

    def share(self, ns: int) -> float:
        """Return a time as a share of the wall time."""
        return ns / max(self.profile.wall_ns, 1)

    def took(self, ns: int) -> str:
        """Return ``82 % of 1.3 s``."""
        return f"{share_words(self.share(ns))} of {time_words(self.profile.wall_ns)}"

    def rows(self, part: Part) -> np.ndarray:
        """Return the host calls of the callback of a part: those of its call site."""
        lowered = self.recording.lowered
        site = lowered[part.lowered].site
        own = [number for number, fact in enumerate(lowered) if fact.site == site]
        return self.recording.calls[np.isin(self.recording.calls["lowered"], own)]

    def run_in_python(self, part: Part) -> bool:
        """Return whether its calls ran in Python, in the program's own threads; not if unknown."""
        recording = self.recording
        workers = {worker.thread for worker in recording.workers}
        threads = np.unique(self.rows(part)["thread"]).tolist()
        own = [n not in workers and recording.threads[n] != COMPILED_THREAD for n in threads]
        return bool(own) and all(own)

    def is_mostly_cost(self, part: Part) -> bool:
        """Return whether its runs are so short that they mostly show the profiler's cost."""
        return part.busy_ns < _EVENTS * self.profile.event_ns * part.times

    def where(self, part: Part) -> str:
        """Name the line of a part, with its column if others like it are on that line."""
        if part.place is None:
            return ""
        line = part.place._replace(column=0)
        alike = (one.place for one in self.parts(part.kind) if one.name == part.name)
        several = sum(place._replace(column=0) == line for place in alike if place) > 1
        return self.recording.where(part.place) + f":{part.place.column + 1}" * several

    def named(self, part: Part) -> str:
        """Return ``simulate (line 3)``."""
        name, where = short_name(part), self.where(part)
        return f"{name} ({where})" if name and where else name or where


def short_name(part: Part) -> str:
    """Return the name of a part on one line, without control characters."""
    return shorten(on_one_line(part.name[: _LONGEST + 1]), _LONGEST)


def share_words(share: float) -> str:
    """Return ``82 %``; ``0.4 %`` for a small share."""
    if 0 < share < 0.0005:
        return "<0.1 %"
    return f"{100 * share:.1f} %" if 0 < share < 0.0095 else f"{100 * share:.0f} %"


def headline(figures: Figures) -> str:
    """Return ``1.3 s: 82 % host functions, 12 % XLA, 6 % other``."""
    largest = sorted(figures.kinds, key=lambda kind: -kind[1])[:_NAMED]
    shares = [(kind, figures.share(ns)) for kind, ns in largest if figures.share(ns) >= _SMALL]
    words = [f"{share_words(share)} {KINDS[kind].words}" for kind, share in shares]
    rest = 100 - sum(round(100 * share) for _, share in shares)
    words += [f"{rest} % other"] * (rest > 0)
    return f"{time_words(figures.profile.wall_ns)}: {', '.join(words)}"


def notes(figures: Figures) -> list[str]:
    """Say what the profile cost, and what it does not have."""
    profile, overflow = figures.profile, figures.recording.overflow
    cost = min(profile.events * profile.event_ns, profile.wall_ns)
    share, reading = share_words(figures.share(cost)), time_words(profile.reading_ns)
    found = [
        f"Profiling: {profile.events:,} events took about {time_words(cost)} of this time "
        f"({share}), and {reading} to read."
    ]
    observing = _observing_ns(figures)
    if observing >= _NOTICED_NS:
        found.append(
            f"To observe JAX's own callbacks took about {time_words(observing)} of their crossings."
        )
    if figures.share(cost + observing) >= _COSTLY and cost + observing >= _NOTICED_NS:
        found.append(
            "Without the profiler, the block is faster, and short operations and crossings take a "
            "smaller part of it."
        )
    for part in figures.parts(PartKind.UNKNOWN):
        if part.name != Unknown.STARTING or figures.share(part.wall_ns) >= _SMALL:
            off = f"JAX's profiler was off for {time_words(part.wall_ns)}"
            why = _WHY_OFF.get(part.name, ".")
            found.append(f"{off}, and what XLA did then is not known{why}")
    if overflow:
        found.append(
            f"{counted(overflow, 'host call')} did not fit into the log: only the sum of their "
            "time is known, so the timeline shows them as crossings. Use a larger capacity."
        )
    return found


def _observing_ns(figures: Figures) -> int:
    """Estimate how long it took to observe JAX's own callbacks."""
    total = 0.0
    for part in figures.parts(PartKind.CROSSING):
        site = None if part.lowered < 0 else figures.recording.lowered[part.lowered].site
        if site is not None and site.flavor.startswith(OBSERVED):
            share = _OBSERVING_OLD if site.is_of_earlier_program else _OBSERVING
            total += part.wall_ns * share
    return int(total)
