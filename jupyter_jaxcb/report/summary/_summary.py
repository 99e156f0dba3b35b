"""Summarize a recording by call site: status, calls, shapes, time."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from ...recording import (
    LoweredSite,
    Outcome,
    Reason,
    Recording,
    SampleValues,
    Site,
    Status,
    calls_each_time,
)
from . import _mask
from ._batch import slow_loop
from ._counts import Counts
from ._mask import Mask
from ._not_finite import not_finite_calls
from ._notes import ProgramNote, library_of, program_notes, site_hints, site_notes
from ._phrases import WORDS
from ._reasons import Cause, in_library
from ._rows import Rows, path
from ._site import SiteSummary
from ._status import status_of
from ._variant import Shapes

STOPPED_BY_YOU = WORDS["stopped"]
_LATE = 0.01  # of the code's time: host calls that end so soon after the code are taken as in it


def summarize(recording: Recording) -> list[SiteSummary]:
    """Summarize every call site that was called, compiled or elided, by file and line.

    Sites that were only traced (`jax.make_jaxpr`, `jax.eval_shape`) are left out: they have no
    status.
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
    known.sort(key=lambda s: (files[s.file], s.line, s.column, path(s)))
    # The notes on a program are at its first site that is the user's.
    libraries = {
        site: library_of(recording.lowered[n] for n in counts.numbers.get(site, ()))
        for site in known
    }
    of_users_first = sorted(known, key=lambda site: bool(libraries[site]))
    about_programs = program_notes(recording, of_users_first, counts.outcomes)
    return [_summarize_site(counts, site, rows, about_programs[site]) for site in known]


_FOLDED = (Status.NOT_REACHED, Status.UNKNOWN)


def folded(recording: Recording, sites: Sequence[SiteSummary]) -> list[SiteSummary]:
    """Show a library's sites without calls, such as checks that passed, as one of each status."""
    without_calls: dict[tuple[str, str], list[SiteSummary]] = {}
    for one in sites:
        # A hint is about the whole program, whose notes are at its first site.
        if one.library and one.consequence in _FOLDED and not (one.calls or one.hints):
            without_calls.setdefault((one.library, one.consequence), []).append(one)
    of_each = {id(alike[0]): _as_one(recording, alike) for alike in without_calls.values()}
    left_out = {id(one) for alike in without_calls.values() for one in alike[1:]}
    return [of_each.get(id(one), one) for one in sites if id(one) not in left_out]


def _as_one(recording: Recording, sites: Sequence[SiteSummary]) -> SiteSummary:
    first, lines = sites[0], len({(one.site.file, one.site.line) for one in sites})
    words = f"{lines} lines " * (lines > 1) + in_library(first.library)
    site = dataclasses.replace(first.site, function=first.library, source=words, callers=())
    where = recording.where(site)
    return dataclasses.replace(
        first, site=site, where=where, name="", shapes=(), causes=(), notes=(), around=(), stack=()
    )


def _summarize_site(
    counts: Counts, site: Site, rows: Rows, about_programs: list[ProgramNote]
) -> SiteSummary:
    recording = counts.recording
    numbers, outcomes = counts.numbers.get(site, []), counts.outcomes.get(site, [])
    errors = counts.errors(site)
    lowered = [recording.lowered[number] for number in numbers]
    calls = counts.calls_of(site)
    loop, library = slow_loop(counts, site, numbers), library_of(lowered)
    host_ns = counts.host_ns(numbers)
    status, causes = status_of(counts, counts.begun(numbers), outcomes)
    if not recording.stale.isdisjoint(numbers):
        causes = (Cause(Reason.EARLIER_REGISTRATION),)
    return SiteSummary(
        site=site,
        where=rows.where(site),
        name=rows.name(site),
        status=status,
        calls=calls,
        crossings=counts.crossings(site),
        expected=_expected(counts, outcomes, "compiled"),
        written=_expected(counts, outcomes, "written"),
        elided=sum(outcome.elided for outcome in outcomes),
        shapes=_shapes(lowered, numbers, counts),
        causes=causes,
        errors=tuple(error for error in errors if not is_stop(error)),
        interrupted=any(map(is_stop, errors)),
        host_ns=host_ns,
        programs=tuple(dict.fromkeys(fact.program.name for fact in lowered if fact.program)),
        around=outcomes[0].around if outcomes else (),
        stack=next((outcome.stack for outcome in outcomes if outcome.stack), ()),
        notes=site_notes(recording, site, outcomes, numbers, about_programs),
        not_finite=sum(one.produced for one in recording.not_finite if one.lowered in numbers),
        sample_values=_ended(counts.sample_values(site), errors),
        ahead=recording.ahead,
        wall_ns=counts.wall_ns(numbers),
        not_finite_calls=not_finite_calls(counts, numbers),
        loop=loop,
        impure=any(fact.impure for fact in lowered),
        library=library,
        hints=site_hints(() if library else outcomes, about_programs, _mask.decides(lowered)),
        dropped=sum(use.full for use in recording.queue if use.lowered in numbers),
        share=_share(recording, host_ns) if all(f.is_awaited for f in lowered) else 0.0,
    )


def _share(recording: Recording, host_ns: int) -> float:
    """Return the share of the recorded code's time that calls took; 0 if it cannot be told."""
    whole = recording.wall_ns
    told = recording.profile is not None or host_ns > whole or is_late(recording)
    return 0.0 if told or len(recording.threads) > 1 else host_ns / max(whole, 1)


def is_late(recording: Recording) -> bool:
    """Return whether host calls went on for some time after the recorded code."""
    return recording.late_ns > _LATE * recording.wall_ns


def _ended(
    samples: tuple[tuple[SampleValues, int | None], ...], errors: Iterable[str]
) -> tuple[tuple[SampleValues, int | None], ...]:
    """Let the calls that the user stopped, where no others failed, have that as their result."""
    if not all(map(is_stop, errors)):
        return samples
    return tuple(
        (one._replace(failed=False, results=(STOPPED_BY_YOU,)) if one.failed else one, shard)
        for one, shard in samples
    )


def is_stop(error: str) -> bool:
    """Whether a call ended because the user stopped it: no failure of the host function."""
    return error.partition(":")[0] in ("KeyboardInterrupt", "EndedError", "NotCalledError")


def _expected(counts: Counts, outcomes: list[Outcome], field: str) -> int | None:
    """Count the host calls of all runs and of eager code; None if unknown.

    Args:
        counts: knows the runs; one run of each program that is only explained.
        outcomes: the outcomes of one site.
        field: which calls to count, ``"compiled"`` or ``"written"``.
    """
    if not outcomes:
        return None
    if any(counts.programs.failed(outcome.program) for outcome in outcomes):
        return None
    if counts.called_unseen(outcomes[0].site):
        return None
    total = counts.eager_calls(outcomes[0].site)
    for outcome in outcomes:
        calls = getattr(outcome, field)
        runs = 0 if calls == 0 else counts.programs.runs(outcome.program)
        if calls is None or runs is None:
            return None
        total += calls * runs
    return total


def _shapes(
    lowered: Iterable[LoweredSite], numbers: Iterable[int], counts: Counts
) -> tuple[Shapes, ...]:
    variants: dict[tuple, list[tuple[LoweredSite, int]]] = {}
    facts = list(zip(lowered, numbers, strict=True))
    in_parts = {
        (fact.program, fact.index)
        for fact, number in facts
        if fact.shard is not None or (fact.program is not None and counts.calls[number])
    }
    for fact, number in facts:
        whole = fact.shard is None and (fact.program, fact.index) in in_parts
        if whole and not counts.calls[number]:  # each device calls with other shapes
            continue
        variants.setdefault((*fact.host_avals(), *_mask.split(fact)), []).append((fact, number))
    found = []
    for (*variant, batched), own in variants.items():
        whose = tuple(number for _, number in own)
        each = calls_each_time(own[0][0].levels)
        shards = sorted({(fact.shard, fact.device) for fact, _ in own if fact.shard is not None})
        found.append(
            Shapes(
                *variant,
                calls=sum(int(counts.calls[number]) for number in whose),
                shards=len({shard for shard, _ in shards}),
                devices=tuple(dict.fromkeys(device for _, device in shards if device)),
                gathered_bytes=max(fact.gathered_bytes for fact, _ in own),
                lowered=whose,
                operand_names=_common(fact.operand_names for fact, _ in own),
                result_names=_common(fact.result_names for fact, _ in own),
                mask=Mask.of(batched, counts.recording, whose),
                stopped=counts.stopped(whose, each) if batched is None else None,
                host_ns=counts.host_ns(whose),
            )
        )
    return tuple(found)


def _common(names: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names that all calls have; a line may bind `f` with different pytrees."""
    found = set(names)
    return found.pop() if len(found) == 1 else ()
