"""A recording by site: fate, calls, shapes, time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np

from ...recording import (
    ELIDED,
    Aval,
    Fate,
    LoweredSite,
    Outcome,
    Preview,
    Program,
    Recording,
    Site,
    VmapLevel,
)
from ._counts import Counts
from ._notes import site_notes
from ._processes import ELSEWHERE, Verdict, over_processes
from ._rows import Rows, path

_UNCALLED = "its program was compiled, and has not run"
_UNSEEN = "its program made no call, and whether it ran at all cannot be seen"
_UNSEEN_REMEDY = "call it through jax.jit, whose runs can be seen"
_FAILED = "a run failed before it came here"
_FAILED_REMEDY = "look at the error"
_UNTAKEN = "its program ran, and did not enter the branch or loop around it"
_UNTAKEN_REMEDY = "look at the condition of the branch or loop around this line"
_ELSEWHERE_REMEDY = "look there, or at what jaxcb.gather(recording) gives"
_STALE = (
    "its program calls an earlier registration of the name, which was registered again in another "
    "cell or with other options"
)
_STALE_REMEDY = (
    "to change what it calls, run the cell of that registration again; to compile it with the new "
    "one, call jax.clear_caches() first"
)
_NO_LANES = "vmap mapped it over an axis of size 0: there is no lane to call it for"
_NO_LANES_REMEDY = "look at the shape of the mapped argument"
_EMPTY = "its result is empty: there is nothing to call it for"
_EMPTY_REMEDY = "look at the shapes of its arguments"
_NOTHING = "it returns nothing, so nothing needs the call"
_NOTHING_REMEDY = "register it as io if it must run regardless"
_UNCALLED_REMEDY = "run the program"


@dataclasses.dataclass(frozen=True)
class Shapes:
    """One way in which a site reached the host: what vmap made of its shapes."""

    operands: tuple[Aval, ...]  # as one host call sees them
    results: tuple[Aval, ...]
    levels: tuple[VmapLevel, ...]  # innermost vmap first
    calls: int  # host calls made this way
    shards: int  # whose devices called, each with its shard; 0: one call for all
    devices: tuple[str, ...]  # these, by shard, where known
    gathered_bytes: int  # at most, on their way to the one device that calls
    lowered: tuple[int, ...]  # indices into `Recording.lowered`


@dataclasses.dataclass(frozen=True)
class SiteSummary:
    """What became of one site."""

    site: Site
    where: str  # as `Recording.where` says, with the column and the callers that others need
    name: str  # tells it from others that have the very column; empty if there are none
    fate: Fate
    calls: int  # host calls
    crossings: int
    expected: int | None  # host calls of the runs that were seen, as compiled; None: not known
    written: int | None  # the same as the source reads
    elided: int  # binds that a compiled program does without, wholly or in part
    shapes: tuple[Shapes, ...]
    reason: str  # empty when live
    remedy: str
    errors: tuple[str, ...]
    host_ns: int  # in the host function, summed over calls
    programs: tuple[str, ...]  # names of the programs that hold it
    around: tuple[str, ...]  # loops, branches and calls around it, outermost first
    stack: tuple[str, ...]  # the transformations too, as JAX names them
    notes: tuple[str, ...]  # what is worth knowing of its calls
    previews: tuple[tuple[Preview, int | None], ...]  # of its first calls, and whose shard it was
    ahead: bool  # nothing ran; expected and written are those of one run

    @property
    def place(self) -> str:
        """Which site it is, for a sentence."""
        return f"{self.where} {self.name}".rstrip()

    @property
    def source(self) -> str:
        """Which site it is, beside where: the line of source, after its name if that is needed."""
        line = self.site.source or self.site.function
        return f"{self.name}: {line}" if self.name and self.site.source else line


def summarize(recording: Recording) -> list[SiteSummary]:
    """Every site that was called, compiled or elided, by file and line.

    Sites that were only traced (`jax.make_jaxpr`, `jax.eval_shape`) are left out: nothing
    became of them.
    """
    counts = Counts(recording)
    sites = dict.fromkeys([*recording.bound, *counts.numbers, *counts.outcomes])
    known = [
        site
        for site in sites
        if site in counts.outcomes
        or any(
            counts.calls[number] or recording.lowered[number].program is None
            for number in counts.numbers.get(site, ())
        )
    ]
    rows = Rows(known, recording.where)
    files = {file: number for number, file in enumerate(dict.fromkeys(s.file for s in sites))}
    return [
        _summarize_site(counts, site, rows)
        for site in sorted(known, key=lambda s: (files[s.file], s.line, s.column, path(s)))
    ]


def _summarize_site(counts: Counts, site: Site, rows: Rows) -> SiteSummary:
    recording = counts.recording
    numbers, outcomes = counts.numbers.get(site, []), counts.outcomes.get(site, [])
    lowered = [recording.lowered[number] for number in numbers]
    calls = counts.calls_of(site)
    decide = _fate_ahead if recording.ahead else _fate
    more: tuple[str, ...] = ()
    if recording.processes:
        verdict, more = over_processes(counts, numbers, outcomes, decide)
    else:
        verdict = decide(counts, counts.begun(numbers), outcomes)
    fate, reason, remedy = verdict
    if recording.stale.intersection(numbers):
        reason, remedy = _STALE, _STALE_REMEDY
    elif fate in (Fate.UNUSED, Fate.FOLDED) and lowered and all(map(_answers_nothing, lowered)):
        arrays = any(fact.results for fact in lowered)
        reason, remedy = (_EMPTY, _EMPTY_REMEDY) if arrays else (_NOTHING, _NOTHING_REMEDY)
    return SiteSummary(
        site=site,
        where=rows.where(site),
        name=rows.name(site),
        fate=fate,
        calls=calls,
        crossings=counts.crossings(site),
        expected=_expected(counts, outcomes, "compiled"),
        written=_expected(counts, outcomes, "written"),
        elided=sum(outcome.fate in ELIDED for outcome in outcomes),
        shapes=_shapes(lowered, numbers, counts.calls),
        reason=reason,
        remedy=remedy,
        errors=counts.errors(site),
        host_ns=counts.host_ns(site),
        programs=tuple(dict.fromkeys(fact.program.name for fact in lowered if fact.program)),
        around=outcomes[0].around if outcomes else (),
        stack=next((outcome.stack for outcome in outcomes if outcome.stack), ()),
        notes=(*more, *site_notes(recording, site, outcomes, numbers)),
        previews=counts.previews(site),
        ahead=recording.ahead,
    )


def _answers_nothing(lowered: LoweredSite) -> bool:
    """Whether all that a call answers has shapes without elements, and not by a vmap."""
    pure = lowered.site.flavor in ("pure", "jax pure")  # others are called all the same
    lanes = all(level.size for level in lowered.levels)
    return pure and lanes and all(0 in aval.shape for aval in lowered.results)


def _fate(counts: Counts, calls: int, outcomes: list[Outcome]) -> Verdict:
    """The fate of a site: of its calls if there are any, else of the programs without."""
    elided = [outcome for outcome in outcomes if outcome.fate in ELIDED]
    partly = [outcome for outcome in elided if outcome.fate in (Fate.MERGED, Fate.HOISTED)]
    if calls:
        if partly:
            return partly[0].fate, partly[0].reason, partly[0].remedy
        if elided:
            return Fate.LIVE, f"elsewhere in the program {elided[0].reason}", elided[0].remedy
        return Fate.LIVE, "", ""
    if not outcomes:  # eager, and called for no lane
        return Fate.UNUSED, _NO_LANES, _NO_LANES_REMEDY
    held = [o for o in outcomes if o.fate not in (Fate.UNUSED, Fate.FOLDED)]
    if not held:
        return elided[0].fate, elided[0].reason, elided[0].remedy
    unknown = [outcome for outcome in held if outcome.fate is Fate.UNKNOWN]
    if unknown:
        return Fate.UNKNOWN, unknown[0].reason, unknown[0].remedy
    if all(outcome.fate is Fate.LIVE and outcome.compiled == 0 for outcome in held):
        return Fate.UNCALLED, ELSEWHERE, _ELSEWHERE_REMEDY
    fate, reason, remedy = _without_calls(counts, {outcome.program for outcome in held})
    if partly and fate is not Fate.UNKNOWN:
        reason, remedy = f"{reason}; {partly[0].reason}", f"{remedy}; {partly[0].remedy}"
    return fate, reason, remedy


def _fate_ahead(counts: Counts, calls: int, outcomes: list[Outcome]) -> Verdict:
    """The fate of a site in a program that is asked about, and not run."""
    held = [outcome for outcome in outcomes if outcome.fate not in (Fate.UNUSED, Fate.FOLDED)]
    unknown = [outcome for outcome in held if outcome.fate is Fate.UNKNOWN]
    for outcome in unknown or (() if held else outcomes):
        return outcome.fate, outcome.reason, outcome.remedy
    return _fate(counts, 1, outcomes)


def _without_calls(counts: Counts, programs: set[Program]) -> Verdict:
    """The fate of a site that compiled programs hold and that was not called."""
    if any(counts.failed(program) for program in programs):
        return _where_some_failed(counts, programs)
    runs = [counts.runs(program) for program in programs]
    if any(runs) or any(counts.called(program) for program in programs):
        return Fate.UNTAKEN, _UNTAKEN, _UNTAKEN_REMEDY
    if None in runs:
        return Fate.UNKNOWN, _UNSEEN, _UNSEEN_REMEDY
    return Fate.UNCALLED, _UNCALLED, _UNCALLED_REMEDY


def _where_some_failed(counts: Counts, programs: set[Program]) -> Verdict:
    """As `_without_calls`, where a run failed: others may have gone through all the same."""
    completed = [counts.completed(program) for program in programs]
    least = sum(low for low, _ in completed)
    if not least:
        return Fate.UNCALLED, _FAILED, _FAILED_REMEDY
    failures = [counts.failures(program) for program in programs]
    failed = sum(low for low, _ in failures)
    sure = all(low == high for low, high in completed), all(low == high for low, high in failures)
    return (
        Fate.UNTAKEN,
        f"{_runs(least, sure[0])} did not enter the branch or loop around it, and "
        f"{_runs(failed, sure[1])} failed before coming here",
        f"{_UNTAKEN_REMEDY}, and at the error",
    )


def _runs(count: int, sure: bool) -> str:
    return f"{'' if sure else 'at least '}{count:,} run{'' if count == 1 else 's'}"


def _expected(counts: Counts, outcomes: list[Outcome], field: str) -> int | None:
    """Host calls of the runs of the programs, and eager ones; None where that is not known.

    Args:
        counts: which runs there were; one of each program that was only asked about.
        outcomes: of one site.
        field: as ``"compiled"`` or as ``"written"``.
    """
    if not outcomes or not counts.exact:
        return None
    if any(counts.failed(outcome.program) for outcome in outcomes):
        return None
    if counts.called_unseen(outcomes[0].site):
        return None
    total = counts.eager_calls(outcomes[0].site)
    for outcome in outcomes:
        calls = getattr(outcome, field)
        runs = 0 if calls == 0 else counts.runs(outcome.program)
        if calls is None or runs is None:
            return None
        total += calls * runs
    return total


def _shapes(
    lowered: Iterable[LoweredSite], numbers: Iterable[int], counts: np.ndarray
) -> tuple[Shapes, ...]:
    ways: dict[tuple, list[tuple[LoweredSite, int]]] = {}
    for fact, number in zip(lowered, numbers, strict=True):
        ways.setdefault((*fact.host_avals(), fact.levels), []).append((fact, number))
    found = []
    for way, own in ways.items():
        shards = sorted({(fact.shard, fact.device) for fact, _ in own if fact.shard is not None})
        found.append(
            Shapes(
                *way,
                calls=sum(int(counts[number]) for _, number in own),
                shards=len({shard for shard, _ in shards}),
                devices=tuple(dict.fromkeys(device for _, device in shards if device)),
                gathered_bytes=max(fact.gathered_bytes for fact, _ in own),
                lowered=tuple(number for _, number in own),
            )
        )
    return tuple(found)
