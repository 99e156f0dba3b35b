"""Find the calls that workers are in, from the stacks of all threads.

The quoted names in this module are local variables of `_crossing` and of the worker: rename them
in both places.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from jupyter_jaxcb_worker import ChunkOutcome, run_elements

from ...stack.dispatch import CallElsewhere, finds_calls
from ...stack.trace import stack_of
from ._crossing import CROSS, LEFT
from ._flight import SubmittedChunk


class _Begun(NamedTuple):
    thread: str
    outcome: ChunkOutcome
    inside: list[FrameType]


@finds_calls
def calls_of_workers(
    frames: Mapping[int, FrameType], names: Mapping[int | None, str]
) -> Iterator[CallElsewhere]:
    """Yield the calls that workers are in, given the innermost frames and names of all threads.

    A call of another process counts until its result is received.
    """
    begun: dict[int, _Begun] = {}  # by number of the chunk
    crossings = [names for names in LEFT if names["run"].is_running()]
    for ident, innermost in frames.items():
        inside: list[FrameType] = []
        for frame in stack_of(innermost):
            if frame.f_code is CROSS:
                crossings.append(frame.f_locals)
            elif frame.f_code is run_elements.__code__ and "outcome" in frame.f_locals:
                found = _Begun(
                    names.get(ident, f"thread {ident}"), frame.f_locals["outcome"], inside
                )
                begun[frame.f_locals["chunk"].number] = found
            inside = [*inside, frame]
    for crossing in crossings:
        run = crossing.get("run")
        for flight in list(run.flights.values()) if run is not None else ():
            call = _call_of_worker(crossing, flight, begun.get(flight.chunk.number))
            if call is not None:
                yield call


def _call_of_worker(
    crossing: Mapping[str, Any], flight: SubmittedChunk, begun: _Begun | None
) -> CallElsewhere | None:
    recorded = crossing["recorder"] is not None
    if begun is not None:
        stamps = begun.outcome.stamps
        place = len(stamps) - 1 if recorded else 0
        call, start = flight.start + place, stamps[-1] if recorded and stamps else None
        if not stamps or call >= flight.stop:
            return None  # not begun, or finished
        took = stamps[-1] - stamps[0]
        return _call(crossing, call, begun.thread, start, begun.inside, place, took)
    mark = flight.mark
    if mark is None:
        return None
    start = max(mark.since_ns, flight.sent_ns) if recorded else None
    call = flight.start + mark.element
    return _call(crossing, call, f"pid {mark.pid}", start, [], mark.element, 0)


def _call(crossing: Mapping[str, Any], call: int, *about: Any) -> CallElsewhere:
    """Return a call, given its index in the crossing and the last fields of `CallElsewhere`."""
    element = int(crossing["self"].order[call])
    return CallElsewhere(crossing, element, crossing["before"] + call + 1, *about)
