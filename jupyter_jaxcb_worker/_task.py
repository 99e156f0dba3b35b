"""What is sent to a worker: the host function, and the operands of a chunk of batch elements."""

from __future__ import annotations

import collections
import functools
import hashlib
import itertools
import pickle
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._call_info import CallFacts
from ._results import collect_numbers, collect_results, dumps_by_value, snapshot
from ._shared import Shared, shared_if_large

KEPT_TASKS = 16  # number of unpickled host functions that a worker caches

Collect = Callable[[int, Iterator[Any]], tuple[Any, BaseException | None]]

_tasks: collections.OrderedDict[bytes, Task] = collections.OrderedDict()
_lock = threading.Lock()


class Task:
    """A host function for an executor, pickled if it leaves the process.

    Args:
        call: takes the operands of one batch element; args and kwargs in another process.
        keep: copies a result.
        pickled: returns the function as bytes; called if it leaves the process.
        near: whether only other processes of this machine get it.
        travelled: whether it came from another process.
        collect: makes calls, and returns their results and the exception that ended them.
        numbers: the declared dtype, if each result is a number; else None.
    """

    def __init__(
        self,
        call: Callable[..., Any],
        keep: Callable[[Any], Any],
        pickled: Callable[[], bytes],
        *,
        near: bool = False,
        travelled: bool = False,
        collect: Collect | None = None,
        numbers: np.dtype | None = None,
    ) -> None:
        self.call = call
        self.keep = keep
        self.near = near
        self.travelled = travelled
        self.collect = collect or functools.partial(collect_results, keep)
        self.numbers = numbers
        self._pickled = pickled

    @functools.cached_property
    def _sent(self) -> tuple[bytes, Any, str | None]:
        blob = self._pickled()
        large = shared_if_large(np.frombuffer(blob, np.uint8)) if self.near else None
        numbers = None if self.numbers is None else self.numbers.str
        key = hashlib.blake2b(blob, digest_size=16, key=(numbers or "").encode()).digest()
        return key, large or blob, numbers

    def __reduce__(self) -> Any:
        return _known_task, self._sent


def _known_task(key: bytes, blob: Any, numbers: str | None) -> Task:
    """Return the task for a pickled function; each worker unpickles it once."""
    with _lock:
        task = _tasks.get(key)
    if task is None:
        declared = collect = None
        if numbers is not None:
            declared = np.dtype(numbers)
            collect = functools.partial(collect_numbers, declared)
        task = Task(
            pickle.loads(blob),
            snapshot,
            lambda: blob,
            travelled=True,
            collect=collect,
            numbers=declared,
        )
    with _lock:
        _tasks[key] = task
        _tasks.move_to_end(key)
        while len(_tasks) > KEPT_TASKS:
            _tasks.popitem(last=False)
    return task


class Column(NamedTuple):
    """One operand of a chunk."""

    array: np.ndarray
    places: np.ndarray | None = None  # row of each batch element; None: element n has row n
    whole: bool = False  # unbatched: each batch element gets the whole array
    shared: Shared | None = None  # the array as it is sent

    def __reduce__(self) -> Any:
        return _column, (self.shared or self.array, self.places, self.whole)

    def sent(self) -> Iterator[Any]:
        """Yield the argument of each batch element as it is sent."""
        return itertools.repeat(self.shared) if self.shared else self.arguments()

    def arguments(self) -> Iterator[np.ndarray]:
        """Yield the argument of each batch element."""
        array = self.array
        if self.whole:
            return itertools.repeat(array)
        if self.places is not None:
            rows = zip(self.places.tolist(), itertools.repeat(...), strict=False)
            return map(array.__getitem__, rows)
        if array.ndim > 1:
            return iter(array)
        scalars: Any = np.nditer(array, flags=["zerosize_ok"], order="C")
        return scalars


def _column(array: np.ndarray, places: np.ndarray | None, whole: bool) -> Column:
    """Unpickle a column; give it NumPy's own dtype object, which is compared by identity."""
    own = np.dtype(array.dtype.str) if array.dtype.kind in "biufc" else array.dtype
    array = array.view(own)
    array.flags.writeable = False
    return Column(array, places, whole)


class Chunk:
    """Batch elements that one worker runs together.

    Args:
        number: numbers the chunks of this process.
        count: the number of batch elements.
        columns: the operands.
        structured: turns operands into args and kwargs; None if the operands are the arguments.
        timeout: seconds that one batch element may take; None for no limit.
        clock: returns nanoseconds; another process uses its own clock.
        stamped: read the clock after each batch element, not only at the start and the end.
        board: the file and place where a local worker marks the element it is running.
        engine: the engine that runs it, in this process.
        by_value: pickle arguments by value, because the executor cannot send classes that workers
            cannot import.
        guard: emptied when no more batch elements are to run, in this process.
        facts: what `call_info` returns in its calls.

    Attributes:
        place: returns the batch element that runs now, from 0; set where the chunk runs.
    """

    place: Callable[[], int]

    def __init__(
        self,
        number: int,
        count: int,
        columns: Sequence[Column],
        structured: Callable[[Sequence[Any]], tuple[Any, Any]] | None = None,
        *,
        timeout: float | None = None,
        clock: Callable[[], int] = time.perf_counter_ns,
        stamped: bool = False,
        board: tuple[str, int] | None = None,
        engine: Any = None,
        by_value: bool = False,
        guard: bytearray | None = None,
        facts: CallFacts | None = None,
    ) -> None:
        self.by_value, self.guard, self.facts = by_value, guard, facts
        self.number, self.count, self.columns = number, count, columns
        self.structured, self.timeout, self.clock = structured, timeout, clock
        self.stamped, self.board, self.engine = stamped, board, engine

    def elements(self) -> Iterator[tuple]:
        """Yield the operands of each batch element."""
        return self._of_columns([column.arguments() for column in self.columns])

    def _of_columns(self, columns: Sequence[Iterator[Any]]) -> Iterator[tuple]:
        elements = zip(*columns, strict=False) if columns else itertools.repeat(())
        return itertools.islice(elements, self.count)

    def __reduce__(self) -> Any:
        arguments: Any = self.columns
        if self.structured is not None:
            elements = self._of_columns([column.sent() for column in self.columns])
            arguments = [self.structured(operands) for operands in elements]
        facts = self._sent_facts()
        if self.structured is not None and self.by_value:
            return _by_value, (dumps_by_value((arguments, True, facts)),)
        return _received_chunk, (arguments, self.structured is not None, facts)

    def _sent_facts(self) -> tuple[Any, ...]:
        return self.number, self.count, self.timeout, self.stamped, self.board, self.facts


class StructuredChunk(Chunk):
    """A chunk from another process, with the args and kwargs of each batch element."""

    calls: Sequence[tuple[Any, Any]] = ()

    def elements(self) -> Iterator[tuple]:
        return iter(self.calls)

    def __reduce__(self) -> Any:  # dask may move work from one worker to another
        return _received_chunk, (self.calls, True, self._sent_facts())


def _by_value(blob: bytes) -> Chunk:
    return _received_chunk(*pickle.loads(blob))


def _received_chunk(arguments: Any, structured: bool, facts: tuple[Any, ...]) -> Chunk:
    number, count, timeout, stamped, board, about = facts
    if structured:
        for array in _arrays(arguments):
            array.flags.writeable = False
    kind = StructuredChunk if structured else Chunk
    columns = () if structured else arguments
    chunk = kind(number, count, columns, timeout=timeout, stamped=stamped, board=board, facts=about)
    if isinstance(chunk, StructuredChunk):
        chunk.calls = arguments
    return chunk


def _arrays(arguments: Any) -> Iterator[np.ndarray]:
    """Yield the arrays in columns, or in plain containers of arguments."""
    if isinstance(arguments, np.ndarray):
        yield arguments
    elif isinstance(arguments, dict):
        yield from _arrays(list(arguments.values()))
    elif isinstance(arguments, (list, tuple)):
        for one in arguments:
            yield from _arrays(one)
