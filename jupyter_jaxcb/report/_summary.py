"""A recording by site: fate, calls, shapes, time."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable

import numpy as np

from ..recording import Aval, Elision, Fate, LoweredSite, Recording, Site, VmapLevel

_UNCALLED = (
    "it is in a compiled program, but no call came: the program has not run, or took another way"
)
_STALE = (
    "its program was compiled for an earlier registration of the name, with other options, and "
    "calls that one"
)
_STALE_REMEDY = "make the program anew (jax.jit again, or jax.clear_caches()) to call the new one"
_NO_LANES = "vmap mapped it over an axis of size 0: there is no lane to call it for"
_NO_LANES_REMEDY = "look at the shape of the mapped argument"
_UNCALLED_REMEDY = "run the program, or look at the branch or loop around this line"


@dataclasses.dataclass(frozen=True)
class Shapes:
    """One way in which a site reached the host: what vmap made of its shapes."""

    operands: tuple[Aval, ...]  # as one host call sees them
    results: tuple[Aval, ...]
    levels: tuple[VmapLevel, ...]  # innermost vmap first
    calls: int  # host calls made this way


@dataclasses.dataclass(frozen=True)
class SiteSummary:
    """What became of one site."""

    site: Site
    where: str  # as `Recording.where` says, with the column where a line has several sites
    fate: Fate
    calls: int  # host calls
    crossings: int
    elided: int  # binds that a compiled program does without
    shapes: tuple[Shapes, ...]
    reason: str  # empty when live
    remedy: str
    errors: tuple[str, ...]
    host_ns: int  # in the host function, summed over calls
    programs: tuple[str, ...]  # names of the programs that hold it


def summarize(recording: Recording) -> list[SiteSummary]:
    """Every site that was called, compiled or elided, by file and line.

    Sites that were only traced (`jax.make_jaxpr`, `jax.eval_shape`) are left out: nothing
    became of them.
    """
    facts: dict[Site, list[int]] = {}
    for number, fact in enumerate(recording.lowered):
        facts.setdefault(fact.site, []).append(number)
    elisions: dict[Site, list[Elision]] = {}
    for elision in recording.elisions:
        elisions.setdefault(elision.site, []).append(elision)
    counts = np.bincount(recording.calls["lowered"], minlength=len(recording.lowered))
    sites = dict.fromkeys([*recording.bound, *facts, *elisions])
    on_line = Counter((site.file, site.line) for site in sites if site in facts or site in elisions)
    files = {file: number for number, file in enumerate(dict.fromkeys(s.file for s in sites))}
    return [
        _summarize_site(
            recording,
            site,
            _where(recording, site, alone=on_line[site.file, site.line] == 1),
            facts.get(site, []),
            elisions.get(site, []),
            counts,
        )
        for site in sorted(sites, key=lambda s: (files[s.file], s.line, s.column))
        if site in facts or site in elisions
    ]


def _summarize_site(
    recording: Recording,
    site: Site,
    where: str,
    numbers: list[int],
    elisions: list[Elision],
    counts: np.ndarray,
) -> SiteSummary:
    rows = recording.calls[np.isin(recording.calls["lowered"], numbers)]
    lowered = [recording.lowered[number] for number in numbers]
    fate, reason, remedy = _fate(len(rows), lowered, elisions)
    if recording.stale.intersection(numbers):
        reason, remedy = _STALE, _STALE_REMEDY
    failed = rows["error"][rows["error"] > 0]
    return SiteSummary(
        site=site,
        where=where,
        fate=fate,
        calls=len(rows),
        crossings=len(np.unique(rows["crossing"])),
        elided=len(elisions),
        shapes=_shapes(lowered, [int(counts[number]) for number in numbers]),
        reason=reason,
        remedy=remedy,
        errors=tuple(dict.fromkeys(recording.errors[code - 1] for code in failed.tolist())),
        host_ns=int((rows["end_ns"] - rows["start_ns"]).sum()),
        programs=tuple(dict.fromkeys(fact.program.name for fact in lowered if fact.program)),
    )


def _where(recording: Recording, site: Site, alone: bool) -> str:
    """Where a site is; with its column (from 1) where it shares the line with another."""
    where = recording.where(site)
    if alone:
        return where
    line, comma, other = where.partition(",")
    return f"{line}:{site.column + 1}{comma}{other}"


def _fate(calls: int, lowered: list[LoweredSite], elisions: list[Elision]) -> tuple[Fate, str, str]:
    if elisions and not lowered:
        return elisions[0].fate, elisions[0].reason, elisions[0].remedy
    if not calls and all(fact.lanes == 0 for fact in lowered):
        return Fate.UNCALLED, _NO_LANES, _NO_LANES_REMEDY
    if not calls:
        return Fate.UNCALLED, _UNCALLED, _UNCALLED_REMEDY
    if elisions:
        return Fate.LIVE, f"elsewhere in the program {elisions[0].reason}", elisions[0].remedy
    return Fate.LIVE, "", ""


def _shapes(lowered: Iterable[LoweredSite], counts: Iterable[int]) -> tuple[Shapes, ...]:
    found: dict[tuple, int] = {}
    for fact, count in zip(lowered, counts, strict=True):
        key = (*fact.host_avals(), fact.levels)
        found[key] = found.get(key, 0) + count
    return tuple(Shapes(*key, calls=count) for key, count in found.items())
