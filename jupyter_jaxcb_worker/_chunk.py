"""Call a host function for a chunk of batch elements, in whichever worker gets them.

A thread of the same process gets the function and the chunk as they are. If an executor pickles
them for another process, they arrive there as bytes, and what came of them goes back as bytes.
"""

from __future__ import annotations

import functools
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from ._call_info import CallFacts, CallInfo, reads_call_in
from ._results import dumps, pickled_error, snapshot, unpickled_error

_KEPT_FUNCTIONS = 16  # unpickled host functions that a worker keeps, with what they remember
_of_thread = threading.local()


class Task:
    """A host function.

    Args:
        call: takes the operands of one batch element.
        keep: takes the number of a call and its result, which may change afterwards.
        pickled: returns the function as bytes, if it leaves the process.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        keep: Callable[[int, Any], Any],
        pickled: Callable[[], bytes] = bytes,
    ) -> None:
        self.call, self.keep, self._pickled = call, keep, pickled

    @functools.cached_property
    def _sent(self) -> bytes:
        return self._pickled()

    def __reduce__(self) -> Any:
        return bytes, (self._sent,)


class Chunk:
    """Batch elements that one worker runs, one after the other.

    Args:
        elements: the operands of each; in another process its args and kwargs.
        facts: what `call_info` returns in the calls.
        structured: returns the args and kwargs of an element, to send them in its place.
        clock: returns nanoseconds; another process uses its own clock.

    Attributes, of which another process only has the defaults:
        start: its first call, among those of the crossing.
        run: facts about its crossing; None if its calls are no longer of interest.
        sent_ns: when it was submitted, on `clock`.
        began: when its timeout began, by `time.monotonic`; None before.
        more: emptied when no more calls are to be made.
        settled: locked by who records what became of it.
        failed: its first call that failed and the error, once it has come back.
    """

    start = sent_ns = 0
    run: Any = None
    began: float | None = None
    more: Sequence[int] = b"\1"
    failed: tuple[int, BaseException] | None = None

    def __init__(
        self,
        elements: Sequence[tuple[Any, ...]],
        facts: CallFacts,
        structured: Callable[[Sequence[Any]], tuple[Any, Any]] | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.elements, self.facts = elements, facts
        self.structured, self.clock = structured, clock
        self.settled = threading.Lock()

    @property
    def count(self) -> int:
        """The number of its batch elements."""
        return len(self.elements)

    @property
    def calls(self) -> range:
        """Its calls, among those of the crossing."""
        return range(self.start, self.start + self.count)

    def __reduce__(self) -> Any:
        assert self.structured is not None
        arrays: dict[Any, np.ndarray] = {}  # one that several elements share is sent once
        elements = []
        for operands in self.elements:
            keys = [(a.__array_interface__["data"], a.shape, a.dtype) for a in operands]
            shared = [arrays.setdefault(*pair) for pair in zip(keys, operands, strict=True)]
            elements.append(self.structured(shared))
        return bytes, (dumps((elements, self.facts)),)


class Worker(NamedTuple):
    """A worker: its machine, process and thread."""

    host: str
    pid: int
    thread: int  # 0: the main thread
    name: str


def in_worker_thread() -> bool:
    """Return whether the process of this thread waits for the call that the thread is in."""
    return getattr(_of_thread, "works", False)


def run_chunk(task: Any, chunk: Any) -> Any:
    """Make the calls of a `Chunk` until one raises; `received` reads what this returns."""
    if isinstance(task, bytes):
        return _run_pickled(task, chunk)
    # Other code reads `chunk` and `stamps` from this frame.
    call, keep, clock = task.call, task.keep, chunk.clock
    chunk.began, error = chunk.began or time.monotonic(), None
    before, _of_thread.works = in_worker_thread(), chunk.run is not None
    stamps = [clock()]
    try:
        for number, element in enumerate(chunk.elements, chunk.start):
            if not chunk.more:
                break
            keep(number, call(*element))
            stamps.append(clock())
    except BaseException as raised:
        error = raised
        stamps.append(clock())
    finally:
        _of_thread.works = before
    return _this_worker(), [], stamps, error, ""


def _run_pickled(task: bytes, chunk: bytes) -> bytes:
    results: list[Any] = []
    try:
        function, (elements, facts) = _function(task), pickle.loads(chunk)
    except BaseException as error:  # a module that this process cannot import
        now = time.perf_counter_ns()
        return pickle.dumps((_this_worker(), results, [now, now], *pickled_error(error)))

    task_here = Task(
        lambda args, kwargs: function(*args, **kwargs),
        lambda number, returned: results.append(snapshot(returned)),
    )
    worker, _, stamps, error, _ = run_chunk(task_here, Chunk(elements, facts))
    return pickle.dumps((worker, results, stamps, *pickled_error(error)))


@functools.lru_cache(_KEPT_FUNCTIONS)
def _function(pickled: bytes) -> Callable[..., Any]:
    """Unpickle a host function, once."""
    return pickle.loads(pickled)


def received(outcome: Any) -> tuple[Worker, list[Any], list[int], BaseException | None, str]:
    """Return what came of a chunk.

    The worker; results of another process, to be `restored`; the worker's clock, in nanoseconds,
    before the first call and after each; the exception of the last call; and its formatted
    traceback, if it comes from another process.
    """
    if not isinstance(outcome, bytes):
        return outcome
    worker, results, stamps, error, trace = pickle.loads(outcome)
    return worker, results, stamps, unpickled_error(error, trace), trace


def _this_worker() -> Worker:
    thread = threading.current_thread()
    ident = 0 if thread is threading.main_thread() else threading.get_ident()
    return Worker(socket.gethostname(), os.getpid(), ident, thread.name)


@reads_call_in(run_chunk.__code__)
def _running_call(frame: FrameType, inside: Sequence[FrameType]) -> CallInfo | None:
    names = frame.f_locals
    return names["chunk"].facts.info(len(names["stamps"]) - 1) if "stamps" in names else None


def start_worker() -> None:
    """Prepare a process of ours: Ctrl-C is handled by the process that waits for it.

    What its first chunk needs is imported now, before a timeout counts.
    """
    import cloudpickle as cloudpickle

    signal.signal(signal.SIGINT, signal.SIG_IGN)
