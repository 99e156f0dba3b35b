"""What is sent: a host function, and operands of some of its batch elements."""

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

from ._results import dumps_by_value, kept, kept_numbers, snapshot
from ._shared import Shared, shared_if_large

KEPT_TASKS = 16  # unpickled host functions that a worker keeps

Collect = Callable[[int, Iterator[Any]], tuple[Any, BaseException | None]]

_tasks: collections.OrderedDict[bytes, Task] = collections.OrderedDict()
_lock = threading.Lock()


class Task:
    """A host function as an executor gets it: itself in this process, pickled in another.

    Args:
        call: takes the operands of one batch element, or args and kwargs where it has travelled.
        keep: makes of an result something that stays as it is.
        pickled: the function as bytes; asked for if it leaves the process.
        near: only other processes of this machine get it.
        travelled: it came from another process.
        collect: makes some calls and keeps their results: these, and what the next call raised.
        numbers: what each result is declared to be; None: no number.
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
        self.collect = collect or functools.partial(kept, keep)
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
    """The task of these bytes; unpickled once in a worker."""
    with _lock:
        task = _tasks.get(key)
    if task is None:
        declared = collect = None
        if numbers is not None:
            declared = np.dtype(numbers)
            collect = functools.partial(kept_numbers, declared)
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
    """One operand of some batch elements."""

    array: np.ndarray
    places: np.ndarray | None = (
        None  # the row of each batch element; None: row n is of batch element n
    )
    whole: bool = False  # each batch element gets all of the array
    shared: Shared | None = None  # the array as it travels

    def __reduce__(self) -> Any:
        return _column, (self.shared or self.array, self.places, self.whole)

    def sent(self) -> Iterator[Any]:
        """Of each batch element, as it travels."""
        return itertools.repeat(self.shared) if self.shared else self.arguments()

    def arguments(self) -> Iterator[np.ndarray]:
        """Of each batch element, read-only as they are."""
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
    """As it is unpickled, with a dtype that is numpy's own again, known by identity."""
    own = np.dtype(array.dtype.str) if array.dtype.kind in "biufc" else array.dtype
    array = array.view(own)
    array.flags.writeable = False
    return Column(array, places, whole)


class Chunk:
    """Some batch elements that one worker runs.

    Args:
        number: of it, in this process.
        count: of batch elements.
        columns: operands.
        structured: from operands to args and kwargs; None: the operands are the arguments.
        timeout: seconds that one batch element may take; None: as long as it likes.
        clock: nanoseconds; another process has its own.
        stamped: look at the clock after each batch element, not at the ends alone.
        board: the file and place where a worker of this machine writes which element it is at.
        engine: that runs it, while it is in this process.
        by_value: arguments may be of classes that no worker can import, and its executor does not
            know how to send those.
    """

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
    ) -> None:
        self.by_value = by_value
        self.number, self.count, self.columns = number, count, columns
        self.structured, self.timeout, self.clock = structured, timeout, clock
        self.stamped, self.board, self.engine = stamped, board, engine

    def elements(self) -> Iterator[tuple]:
        """The operands of each."""
        return self._of_columns([column.arguments() for column in self.columns])

    def _of_columns(self, columns: Sequence[Iterator[Any]]) -> Iterator[tuple]:
        elements = zip(*columns, strict=False) if columns else itertools.repeat(())
        return itertools.islice(elements, self.count)

    def __reduce__(self) -> Any:
        arguments: Any = self.columns
        if self.structured is not None:
            elements = self._of_columns([column.sent() for column in self.columns])
            arguments = [self.structured(operands) for operands in elements]
        facts = self.number, self.count, self.timeout, self.stamped, self.board
        if self.structured is not None and self.by_value:
            return _by_value, (dumps_by_value((arguments, True, facts)),)
        return _travelled, (arguments, self.structured is not None, facts)


class StructuredChunk(Chunk):
    """A chunk that came from another process, with args and kwargs of each batch element."""

    calls: Sequence[tuple[Any, Any]] = ()

    def elements(self) -> Iterator[tuple]:
        return iter(self.calls)

    def __reduce__(self) -> Any:  # dask hands work of one worker to another
        facts = self.number, self.count, self.timeout, self.stamped, self.board
        return _travelled, (self.calls, True, facts)


def _by_value(blob: bytes) -> Chunk:
    return _travelled(*pickle.loads(blob))


def _travelled(arguments: Any, structured: bool, facts: tuple[Any, ...]) -> Chunk:
    number, count, timeout, stamped, board = facts
    if structured:
        for array in _arrays(arguments):
            array.flags.writeable = False
    kind = StructuredChunk if structured else Chunk
    columns = () if structured else arguments
    chunk = kind(number, count, columns, timeout=timeout, stamped=stamped, board=board)
    if isinstance(chunk, StructuredChunk):
        chunk.calls = arguments
    return chunk


def _arrays(arguments: Any) -> Iterator[np.ndarray]:
    """Those in columns, or in plain containers of arguments."""
    if isinstance(arguments, np.ndarray):
        yield arguments
    elif isinstance(arguments, dict):
        yield from _arrays(list(arguments.values()))
    elif isinstance(arguments, (list, tuple)):
        for one in arguments:
            yield from _arrays(one)
