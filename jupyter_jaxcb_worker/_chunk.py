"""What is sent to a worker: a host function, and a chunk of batch elements; and what comes back.

In a thread, all of these are used as they are. They pickle themselves when an executor sends them
to another process.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import itertools
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NamedTuple

import numpy as np

from ._call_info import CallFacts, CallInfo, reads_call_in
from ._results import (
    dumps,
    pickled_error,
    snapshot,
    stacked,
    unpickled_error,
    unstacked,
)

_KEPT_TASKS = 16  # unpickled host functions that a worker keeps, with what they remember
_tasks: collections.OrderedDict[bytes, Task] = collections.OrderedDict()
_of_thread = threading.local()


class Task:
    """A host function.

    Args:
        call: takes the operands of one batch element; in another process its args and kwargs if
            the chunk has those.
        keep: copies a result.
        pickled: returns the function as bytes; called once, if it leaves the process.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        keep: Callable[[Any], Any],
        pickled: Callable[[], bytes],
        *,
        travelled: bool = False,
    ) -> None:
        self.call, self.keep, self.travelled = call, keep, travelled
        self._pickled = pickled

    @functools.cached_property
    def _sent(self) -> tuple[bytes, bytes]:
        data = self._pickled()
        return hashlib.blake2b(data, digest_size=16).digest(), data

    def __reduce__(self) -> Any:
        return _received_task, self._sent


def _received_task(key: bytes, data: bytes) -> Task:
    """Return the task of a pickled function; a worker unpickles a function once."""
    task = _tasks.get(key)
    if task is None:
        task = Task(pickle.loads(data), snapshot, lambda: data, travelled=True)
    _tasks[key] = task
    _tasks.move_to_end(key)
    while len(_tasks) > _KEPT_TASKS:
        _tasks.popitem(last=False)
    return task


class Column(NamedTuple):
    """One operand of a chunk."""

    array: np.ndarray
    rows: np.ndarray | None = None  # the row of each batch element; None: each gets the whole array

    def arguments(self) -> Iterator[np.ndarray]:
        """Yield the argument of each batch element: an array, also of rank 0."""
        if self.rows is None:
            return itertools.repeat(self.array)
        rows = zip(self.rows.tolist(), itertools.repeat(...), strict=False)
        return map(self.array.__getitem__, rows)

    def __reduce__(self) -> Any:
        if self.rows is None:
            return _received_column, (self.array, None)
        needed, rows = np.unique(self.rows, return_inverse=True)
        return _received_column, (self.array[needed], rows)


def _received_column(array: np.ndarray, rows: np.ndarray | None) -> Column:
    array.flags.writeable = False
    return Column(array, rows)


class Chunk:
    """Batch elements that one worker runs, one after the other.

    Args:
        count: the number of batch elements.
        columns: the operands; in another process, the args and kwargs of each batch element if the
            chunk is `structured`.
        structured: turns the operands of a batch element into args and kwargs, which are sent in
            their place; None: the operands are the arguments.
        facts: what `call_info` returns in its calls.
        clock: returns nanoseconds; another process uses its own clock.

    Attributes:
        start: its first call, among those of the crossing.
        sent_ns: when it was submitted, on `clock`, in this process.
        began: when its timeout began, by `time.monotonic`, in this process.
        more: emptied when no more calls are to be made, in this process.
        crossing: facts about the crossing, in this process.
        executors: those that wait for this chunk, in this process.
    """

    start = sent_ns = 0
    began = 0.0
    more: Sequence[int] = b"\1"
    crossing: Mapping[str, Any] | None = None
    executors: tuple[Any, ...] = ()

    def __init__(
        self,
        count: int,
        columns: Sequence[Any],
        structured: Callable[[Sequence[Any]], tuple[Any, Any]] | None,
        facts: CallFacts,
        clock: Callable[[], int] = time.perf_counter_ns,
    ) -> None:
        self.count, self.columns, self.structured = count, columns, structured
        self.facts, self.clock = facts, clock

    @property
    def calls(self) -> range:
        """Its calls, among those of the crossing."""
        return range(self.start, self.start + self.count)

    def elements(self) -> Iterator[tuple[Any, ...]]:
        """Yield the operands of each batch element."""
        columns = [column.arguments() for column in self.columns]
        return itertools.islice(
            zip(*columns, strict=False) if columns else itertools.repeat(()), self.count
        )

    def __reduce__(self) -> Any:
        columns = self.columns
        if self.structured is not None:
            columns = [self.structured(operands) for operands in self.elements()]
        is_structured = self.structured is not None or isinstance(self, _StructuredChunk)
        return _received_chunk, (dumps((self.count, columns, self.facts)), is_structured)


class _StructuredChunk(Chunk):
    """A chunk from another process, with the args and kwargs of each batch element."""

    def elements(self) -> Iterator[tuple[Any, ...]]:
        return iter(self.columns)


def _received_chunk(data: bytes, is_structured: bool) -> Chunk:
    count, columns, facts = pickle.loads(data)
    return (_StructuredChunk if is_structured else Chunk)(count, columns, None, facts)


class Worker(NamedTuple):
    """A worker: its machine, process and thread."""

    host: str
    pid: int
    thread: int
    name: str


class Outcome(NamedTuple):
    """What came of a chunk.

    Attributes:
        worker: the worker that ran it.
        results: the results of the batch elements that returned.
        stamps: the worker's clock, in nanoseconds, before the first call and after each.
        error: the exception of the next batch element, if any.
        trace: its formatted traceback, if it comes from another process.
    """

    worker: Worker
    results: Sequence[Any]
    stamps: Sequence[int]
    error: BaseException | None = None
    trace: str = ""

    def __reduce__(self) -> Any:
        error = pickled_error(self.error)
        stamps = np.array(self.stamps, np.int64)  # pickled faster than a list
        return _received_outcome, (self.worker, stacked(self.results), stamps, *error)


def _received_outcome(
    worker: Worker, results: Any, stamps: np.ndarray, error: bytes, trace: str
) -> Outcome:
    return Outcome(
        worker, unstacked(results), stamps.tolist(), unpickled_error(error, trace), trace
    )


def executors_of_thread() -> tuple[Any, ...]:
    """Return the executors that wait for the call that this thread is in."""
    return getattr(_of_thread, "executors", ())


def run_chunk(task: Task, chunk: Chunk) -> Outcome:
    """Make the calls of `chunk` until one raises."""
    # Other code reads `chunk`, `results` and `stamps` from this frame.
    call, keep, clock = task.call, task.keep, chunk.clock
    if isinstance(chunk, _StructuredChunk):
        call = functools.partial(_call_structured, call)
    results: list[Any] = []
    error = None
    before, _of_thread.executors = executors_of_thread(), chunk.executors
    stamps = [clock()]
    try:
        for operands in chunk.elements():
            if not chunk.more:
                break
            results.append(keep(call(*operands)))
            stamps.append(clock())
    except BaseException as raised:
        error = raised
        stamps.append(clock())
    finally:
        _of_thread.executors = before
    return Outcome(_this_worker(task.travelled), results, stamps, error)


def _call_structured(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _this_worker(travelled: bool) -> Worker:
    thread = threading.current_thread()
    only = travelled and thread is threading.main_thread()
    ident = 0 if only else threading.get_ident()
    return Worker(socket.gethostname(), os.getpid(), ident, thread.name)


@reads_call_in(run_chunk.__code__)
def _running_call(frame: FrameType, inside: Sequence[FrameType]) -> CallInfo | None:
    return frame.f_locals["chunk"].facts.info(len(frame.f_locals["results"]))


def start_worker() -> None:
    """Prepare a process of ours: Ctrl-C is handled by the process that waits for it.

    What its first chunk needs is imported now, before a timeout counts.
    """
    import cloudpickle as cloudpickle

    signal.signal(signal.SIGINT, signal.SIG_IGN)
