"""What random programs and conformance tests read from a recording: its lines, and their calls.

Whoever changes what a recording consists of, or how a status is found, changes this module, and
none of those tests.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jupyter_jaxcb as jaxcb
from tests.interface import Outcome, Reason, Site, summarize

Call = tuple[tuple[tuple[int, ...], ...], tuple[Any, ...], tuple[Any, ...]]

SILENT = {"unused", "optimized_away", "not_reached", "not_run"}  # statuses without a call
FEWER = {"deduplicated", "hoisted", "fewer"}  # statuses with fewer calls than the text asks for
_HOISTED = {Reason.HOISTED, Reason.FEWER}


class Line(NamedTuple):
    """One call site, as reports have it: the line that binds a callback, in one context."""

    line: int
    place: tuple[Any, ...]  # the same for this call site in each run of the same text
    function: str  # name of the host function
    flavor: str
    status: str  # "kept", "unused"
    reason: str  # text of its status; empty if its calls are simply kept
    causes: tuple[str, ...]  # the reasons behind it: "may_be_hoisted"
    advice: str
    asked: int | None  # calls that the text asks for, in all recorded runs; None: unknown
    made: int  # calls that were made
    expected: int | None  # calls that the report expects of the recorded runs; None: unknown
    compiled: int | None  # calls of one run of its compiled programs; None: unknown
    is_elided: bool  # the report says that calls are missing
    is_hoisted: bool  # a call was moved before its loop, which may not be entered


def lines(recording: jaxcb.Recording) -> list[Line]:
    """Return the lines of a recording or of an explanation."""
    outcomes: dict[Site, list[Outcome]] = {}
    for outcome in recording.outcomes:
        outcomes.setdefault(outcome.site, []).append(outcome)
    return [_line(row, outcomes.get(row.site, [])) for row in summarize(recording)]


def _line(row: Any, outcomes: list[Outcome]) -> Line:
    site, compiled = row.site, [outcome.compiled for outcome in outcomes] or [None]
    callers = tuple((frame.function, frame.line, frame.column) for frame in site.callers)
    return Line(
        line=site.line,
        place=(site.line, site.column, site.flavor, site.function, callers),
        function=site.function,
        flavor=site.flavor,
        status=str(row.status),
        reason=row.reason,
        causes=tuple(str(cause.reason) for cause in row.causes),
        advice=row.advice,
        asked=row.written,
        made=row.calls,
        expected=row.expected,
        compiled=None if None in compiled else sum(compiled),
        is_elided=bool(row.elided),
        is_hoisted=any(outcome.reason in _HOISTED for outcome in outcomes),
    )


def facts(recording: jaxcb.Recording) -> list[Any]:
    """Return, sorted, all facts about each bind that an explanation and a run have in common."""
    return sorted(
        (
            (
                *(one.site.function, one.site.line, one.site.column, str(one.status), one.reason),
                *(one.written, one.compiled, one.instructions),
                *(one.call_paths, one.unrolled, one.notes),
            )
            for one in recording.outcomes
        ),
        key=repr,
    )


def called(recording: jaxcb.Recording) -> list[str]:
    """Return the host function of each call, in the order of the recording."""
    return [recording.lowered[call.lowered].site.function for call in recording]


def call_shapes(recording: jaxcb.Recording) -> list[Call]:
    """Return, for each call, the shapes of its arguments, its results, and its vmap levels.

    A result is a shape and a dtype; a level is the size, the method, and which arguments have it.
    """
    found = []
    for call in recording:
        lowered = recording.lowered[call.lowered]
        operands, results = lowered.host_avals()
        found.append(
            (
                tuple(aval.shape for aval in operands),
                tuple((aval.shape, aval.dtype) for aval in results),
                tuple((level.size, level.method, level.batched) for level in lowered.levels),
            )
        )
    return found
