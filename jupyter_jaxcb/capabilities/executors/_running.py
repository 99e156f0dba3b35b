"""Find the calls that workers are in: in threads from their stacks, elsewhere by their futures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from jupyter_jaxcb_worker import Chunk, run_chunk

from ...stack.dispatch import CallElsewhere, finds_calls
from ...stack.trace import stack_of
from ._chunks import IN_FLIGHT


@finds_calls
def calls_of_workers(
    frames: Mapping[int, FrameType], names: Mapping[int | None, str]
) -> Iterator[CallElsewhere]:
    """Yield the calls that workers are in, given the innermost frames and names of all threads.

    Of a chunk in a process of ours, nobody here knows how far it is: it counts as its first call
    until it comes back.
    """
    for ident, innermost in frames.items():
        inside: list[FrameType] = []
        for frame in stack_of(innermost):
            if frame.f_code is run_chunk.__code__ and "stamps" in frame.f_locals:
                chunk, stamps = frame.f_locals["chunk"], frame.f_locals["stamps"]
                crossing, done = chunk.crossing, len(stamps) - 1
                if crossing is not None and 0 <= done < chunk.count:
                    thread, took = names.get(ident, f"thread {ident}"), stamps[-1] - stamps[0]
                    yield _call(crossing, chunk, done, thread, stamps[-1], list(inside), took)
                inside = []
            else:
                inside.append(frame)
    for future, chunk in list(IN_FLIGHT.items()):
        crossing, pid_of = chunk.crossing, getattr(chunk.executors[-1], "pid_of", None)
        pid = None if pid_of is None else pid_of(future)
        if pid is not None and crossing is not None:
            yield _call(crossing, chunk, 0, f"pid {pid}", chunk.sent_ns, [], 0)


def _call(
    crossing: Mapping[str, Any],
    chunk: Chunk,
    done: int,
    thread: str,
    start_ns: int,
    inside: list[FrameType],
    took_ns: int,
) -> CallElsewhere:
    """Return a call of a chunk of which `done` calls have returned."""
    call = chunk.start + done
    start = None if crossing["recorder"] is None else start_ns
    element, number = int(crossing["order"][call]), crossing["before"] + call + 1
    return CallElsewhere(crossing, element, number, thread, start, inside, done, took_ns)
