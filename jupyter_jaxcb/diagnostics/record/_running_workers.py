"""Which host calls workers of executors are making right now.

The frame of a crossing knows which chunks are sent and not back. Of a thread of this process its
own frames say at which lane it is, of another process the board.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

from jupyter_jaxcb_worker import Ran, run_lanes

from ...stack.executors import CROSS, SubmittedChunk


class Lane(NamedTuple):
    """A call that a worker has begun."""

    crossing: Mapping[str, Any]  # what the frame of the crossing has, by name
    call: int  # of the crossing
    thread: str  # its name, or the number of its process
    start_ns: int | None  # of the recorder's clock; None: nobody records it
    inside: list[FrameType]  # innermost first; none of another process


class _Begun(NamedTuple):
    thread: str
    ran: Ran
    inside: list[FrameType]


def lanes_of_workers(
    frames: Mapping[int, FrameType], names: Mapping[int | None, str]
) -> Iterator[Lane]:
    """The calls that workers are in, by the innermost frames of all threads and their names.

    What another process has just answered is among them until it is received.
    """
    begun: dict[int, _Begun] = {}  # by the number of the chunk
    crossings: list[Mapping[str, Any]] = []
    for ident, innermost in frames.items():
        frame, inside = innermost, []
        while frame is not None:
            if frame.f_code is CROSS:
                crossings.append(frame.f_locals)
            elif frame.f_code is run_lanes.__code__ and "ran" in frame.f_locals:
                found = _Begun(names.get(ident, f"thread {ident}"), frame.f_locals["ran"], inside)
                begun[frame.f_locals["chunk"].number] = found
            inside = [*inside, frame]
            frame = frame.f_back
    for crossing in crossings:
        run = crossing.get("run")
        for flight in list(run.flights.values()) if run is not None else ():
            lane = _lane(crossing, flight, begun.get(flight.chunk.number))
            if lane is not None:
                yield lane


def _lane(crossing: Mapping[str, Any], flight: SubmittedChunk, begun: _Begun | None) -> Lane | None:
    recorded = crossing["recorder"] is not None
    if begun is not None:
        stamps = begun.ran.stamps
        place = len(stamps) - 1 if recorded else 0
        call, start = flight.start + place, stamps[-1] if recorded and stamps else None
        if not stamps or call >= flight.stop:
            return None  # not begun, or done
        return Lane(crossing, call, begun.thread, start, begun.inside)
    mark = flight.mark
    if mark is None:
        return None
    start = max(mark.since_ns, flight.sent_ns) if recorded else None
    return Lane(crossing, flight.start + mark.lane, f"pid {mark.pid}", start, [])
