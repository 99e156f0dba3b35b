"""Find the calls that workers are in: in threads from their stacks, in processes by chunk."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import FrameType

from jupyter_jaxcb_worker import Chunk

from ...stack.dispatch import CallElsewhere, finds_calls
from ...stack.trace import stack_of
from ._crossing import RUN_CHUNK
from ._pools import RUNNING


@finds_calls
def calls_of_workers(
    frames: Mapping[int, FrameType], names: Mapping[int | None, str]
) -> Iterator[CallElsewhere]:
    """Yield the calls that workers are in, given the innermost frames and names of all threads.

    Of a chunk in a process of ours, nobody here knows how far it is: it counts as its first call
    until it comes back.
    """
    for ident, innermost in frames.items():
        thread = names.get(ident, f"thread {ident}")
        inside: list[FrameType] = []
        for frame in stack_of(innermost):
            if frame.f_code is RUN_CHUNK:
                stamps = frame.f_locals.get("stamps")
                if stamps:
                    yield from _call(frame.f_locals["chunk"], stamps, thread, inside)
                inside = []
            else:
                inside.append(frame)
    for chunk, pool in list(RUNNING.items()):
        for pid in list(pool._processes or ()):
            yield from _call(chunk, [chunk.sent_ns], f"pid {pid}", [])


def _call(
    chunk: Chunk, stamps: list[int], thread: str, inside: list[FrameType]
) -> Iterator[CallElsewhere]:
    """Yield the call that a worker is in, given its clock before the first call and after each."""
    run, done, last_ns = chunk.run, len(stamps) - 1, stamps[-1]
    if run is not None and done < chunk.count:
        call = chunk.start + done
        start, took = None if run.recorder is None else last_ns, last_ns - stamps[0]
        element, number = int(run.order[call]), run.before + call + 1
        yield CallElsewhere(vars(run), element, number, thread, start, inside, done, took)
