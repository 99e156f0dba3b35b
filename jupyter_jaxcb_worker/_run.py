"""The worker's loop over the batch elements of a chunk."""

from __future__ import annotations

import contextlib
import contextvars
import functools
import itertools
import mmap
import operator
import os
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

from ._call_info import CallInfo, reads_call_in
from ._outcome import ChunkOutcome, Worker
from ._results import check_ended
from ._task import Chunk, StructuredChunk, Task

SLOT = struct.Struct("qqqq")  # one place on a board: chunk, pid, element of the chunk, start time
_ELEMENT, _SINCE = 2, 3

_boards: dict[str, memoryview | None] = {}
_lock = threading.Lock()
# The engine for which each thread of this process is running batch elements now.
running: dict[int, Any] = {}


def run_elements(task: Task, chunk: Chunk) -> ChunkOutcome:
    """Run the batch elements of `chunk` until one raises or times out."""
    outcome = ChunkOutcome(_this_worker(task.travelled))
    thread = threading.get_ident()
    before = running.pop(thread, None)  # while a thread waits for batch elements, it runs none
    try:
        if chunk.timeout is None:
            running[thread] = chunk.engine
            _run(task, chunk, outcome)
        else:
            _run_timed(task, chunk, outcome)
    finally:
        running.pop(thread, None)
        if before is not None:
            running[thread] = before
    return outcome


def _calls(task: Task, chunk: Chunk) -> Iterator[Any]:
    """Yield the results; each call is made when its result is requested."""
    call, elements = task.call, chunk.elements()
    if isinstance(chunk, StructuredChunk):
        call = functools.partial(_call_structured, call)
    if chunk.guard is None or task.travelled:
        # In C, because this happens for every batch element.
        cells = (_board_cells(chunk) if task.travelled else None) or _own_cells()
        chunk.place = functools.partial(cells.__getitem__, _ELEMENT)
        marks = map(cells.__setitem__, itertools.repeat(_ELEMENT), itertools.count())
        if chunk.stamped or chunk.timeout is not None:
            since = map(cells.__setitem__, itertools.repeat(_SINCE), _times())
            marks = zip(marks, since, strict=False)
        elements = map(operator.itemgetter(0), zip(elements, marks, strict=False))
    else:
        guard, left = chunk.guard, iter(chunk.guard)
        chunk.place = lambda: len(guard) - operator.length_hint(left) - 1
        guarded = zip(itertools.chain(left, _end(guard)), elements, strict=False)
        elements = map(operator.itemgetter(1), guarded)
    return itertools.starmap(call, elements)


class _NoMore(Exception):
    """No more batch elements of a chunk are to run."""


def _end(guard: bytearray) -> Iterator[int]:
    """Raise `_NoMore` where a guard that was emptied ends; yields nothing."""
    if not guard:
        raise _NoMore
    return
    yield


def _call_structured(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _times() -> Iterator[int]:
    while True:
        yield time.perf_counter_ns()


def _run(task: Task, chunk: Chunk, outcome: ChunkOutcome) -> None:
    clock, stamps = chunk.clock, outcome.stamps
    stamps.append(clock())
    calls = _calls(task, chunk)
    if chunk.stamped:
        calls = _stamped(calls, stamps, clock)
    outcome.results, outcome.error = task.collect(chunk.count, calls)
    if type(outcome.error) is _NoMore:
        outcome.error = None
    if not chunk.stamped or (outcome.error is not None and len(stamps) == len(outcome.results) + 1):
        stamps.append(clock())


def _stamped(calls: Iterator[Any], stamps: list[int], clock: Callable[[], int]) -> Iterator[Any]:
    for result in calls:
        stamps.append(clock())
        yield result


def _run_timed(task: Task, chunk: Chunk, outcome: ChunkOutcome) -> None:
    """Run the calls in a separate thread, which is abandoned if a batch element times out."""
    came: queue.SimpleQueue[Any] = queue.SimpleQueue()
    over = threading.Event()
    name = threading.current_thread().name
    run = contextvars.copy_context().run  # the crossing's, if the worker is a thread
    thread = threading.Thread(
        target=run, args=(_run_until, over, came.put, task, chunk), name=name, daemon=True
    )
    results: list[Any] = []
    outcome.results = results
    outcome.stamps.append(chunk.clock())
    thread.start()
    while len(results) < chunk.count and outcome.error is None:
        try:
            result, outcome.error, ended = came.get(timeout=chunk.timeout)
        except queue.Empty:
            over.set()
            running.pop(thread.ident or 0, None)
            outcome.timed_out = True
            outcome.error = TimeoutError(f"the call took more than {chunk.timeout:g} s (timeout=)")
            ended = chunk.clock()
        else:
            if type(outcome.error) is _NoMore:
                outcome.error = None
                break
            if outcome.error is None:
                results.append(result)
        if chunk.stamped or outcome.error is not None or len(results) == chunk.count:
            outcome.stamps.append(ended)


def _run_until(over: threading.Event, put: Callable[[Any], None], task: Task, chunk: Chunk) -> None:
    """Put the result and error (one is None) of each call, and when it ended."""
    done, clock = 0, chunk.clock
    running[threading.get_ident()] = chunk.engine
    try:
        for result in map(task.keep, _calls(task, chunk)):
            put((result, None, clock()))
            if over.is_set():
                return
            done += 1
        check_ended(done, chunk.count)
    except BaseException as error:
        put((None, error, clock()))
    finally:
        running.pop(threading.get_ident(), None)


def _this_worker(travelled: bool) -> Worker:
    name = threading.current_thread().name
    if travelled and "distributed" in sys.modules:
        with contextlib.suppress(Exception):  # not in a dask worker
            name = str(sys.modules["distributed"].get_worker().address)
    only = travelled and threading.current_thread() is threading.main_thread()
    return Worker(socket.gethostname(), os.getpid(), 0 if only else threading.get_ident(), name)


def _board_cells(chunk: Chunk) -> memoryview | None:
    """Return the cells on the board where this chunk marks its element; None without a board."""
    if chunk.board is None:
        return None
    path, place = chunk.board
    with _lock:
        if path not in _boards:
            _boards[path] = _map_board(path)
        board = _boards[path]
    if board is None:
        return None
    cells = board[place * SLOT.size : (place + 1) * SLOT.size].cast("q")
    cells[_ELEMENT], cells[_SINCE] = 0, time.perf_counter_ns()
    cells[1], cells[0] = os.getpid(), chunk.number  # last: the chunk number makes the mark valid
    return cells


def _map_board(path: str) -> memoryview | None:
    try:
        with open(path, "r+b") as file:
            return memoryview(mmap.mmap(file.fileno(), 0))
    except OSError:  # the board is on another machine
        return None


def _own_cells() -> memoryview:
    """Return cells as on the board, for a chunk that has no place there."""
    return memoryview(bytearray(SLOT.size)).cast("q")


@reads_call_in(run_elements.__code__, _run_until.__code__)
def _running_call(frame: FrameType, inside: Sequence[FrameType]) -> CallInfo | None:
    chunk = frame.f_locals["chunk"]
    return None if chunk.facts is None else chunk.facts.info(chunk.place())
