"""Keep the objects that were used last; each is made once, by whichever thread needs it first."""

from __future__ import annotations

import numbers
import os
import reprlib
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from ...recording import on_one_line
from ._closing import Kept, close_later, is_counted, report
from ._size import resident_bytes, visible_bytes

_AGAIN_SECONDS = 1.0  # a waiting thread runs Python so often, so that it can be interrupted


class Limits(NamedTuple):
    """What a store keeps at most."""

    max_bytes: int
    max_objects: int
    max_age: float | None  # in seconds


class Counted(NamedTuple):
    """What happened to the objects of a store."""

    computed: int = 0  # number of objects made
    found: int = 0  # number of times that one was found
    removed: int = 0  # number of objects pushed out by a limit
    computed_ns: int = 0  # to make them
    saved_ns: int = 0  # that it took to make those that were found, summed over the times
    hashed_ns: int = 0  # to hash arguments

    def plus(self, more: Counted, times: int = 1) -> Counted:
        """Return the sum of both; with `times` -1, the difference."""
        return Counted(*(a + times * b for a, b in zip(self, more, strict=True)))


class _Making:
    """An object that a thread is making."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.ended = threading.Event()

    def wait(self, name: str) -> None:
        """Wait for the end; raise if its thread waits for an object of this one."""
        me = threading.get_ident()
        try:
            with _waiting_lock:
                other: _Making | None = self
                while other is not None and other.thread != me:
                    other = _waiting.get(other.thread)
                if other is not None:
                    raise RuntimeError(
                        f"{name} needs its own object: it calls itself with equal arguments, also "
                        "through the functions of other host objects. Compute the object without "
                        "it, or call it with other arguments."
                    )
                _waiting[me] = self
            while not self.ended.wait(_AGAIN_SECONDS):
                pass
        finally:
            _waiting.pop(me, None)


_waiting: dict[int, _Making] = {}  # what each thread waits for
_waiting_lock = threading.Lock()
_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _in_forked_child() -> None:
    """Go on with the one thread that the child has; others may have held locks, or be missed."""
    global _waiting_lock
    _waiting_lock = threading.Lock()
    _waiting.clear()
    for store in list(_stores):
        store.forget_other_threads()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)


class Store:
    """Objects by key; thread-safe, and no lock is held while user code runs.

    Args:
        name: of the function, for errors.
        limits: what to keep.
        size: returns the bytes of an object; None: they are measured.
        close: called with an object that was removed, when nothing refers to it.
    """

    def __init__(
        self,
        name: str,
        limits: Limits,
        size: Callable[[Any], int] | None,
        close: Callable[[Any], object] | None,
    ) -> None:
        self.name, self.limits = name, limits
        self._size, self._close = size, close
        self._kept: OrderedDict[Hashable, Kept] = OrderedDict()
        self._making: dict[Hashable, _Making] = {}
        self._lock = threading.RLock()  # a destructor may use the store meanwhile
        self._bytes = 0
        self._largest_growth = 0  # of the process's memory, by making one object
        self._generation = 0  # number of times that all objects were removed
        self.counted = Counted()
        _stores.add(self)

    def get(self, key: Hashable, make: Callable[[], Any], hashed_ns: int) -> tuple[Any, Counted]:
        """Return the object for `key`, and what happened; `make` it if it is not kept."""
        while True:
            gone: list[Kept] = []
            with self._lock:
                known = self._found(key, gone)
                if known is not None:
                    happened = self._count(found=1, saved=known.made_ns, hashed=hashed_ns)
                    return known.value, happened
            self._close_later(gone)
            mine = _Making()
            try:
                with self._lock:
                    making = self._making.setdefault(key, mine)
                    generation = self._generation
                # Another thread may have made it since the lock was released.
                if making is mine and key not in self._kept:
                    return self._made(key, make, generation, hashed_ns)
            finally:
                with self._lock:
                    if self._making.get(key) is mine:
                        del self._making[key]
                mine.ended.set()
            if making is not mine:
                making.wait(self.name)

    def totals(self) -> tuple[int, int, Counted]:
        """Return the number of objects kept, their bytes, and what happened so far."""
        with self._lock:
            return len(self._kept), self._bytes, self.counted

    def clear(self) -> list[Exception]:
        """Remove all objects; return the errors of those that were closed."""
        with self._lock:
            gone = list(self._kept.values())
            self._kept.clear()
            self._bytes = 0
            self._generation += 1
        return close_later(gone, self._close, self.name) if self._close else []

    def forget_other_threads(self) -> None:
        """After a fork: what other threads were making, the child makes itself."""
        self._lock = threading.RLock()
        me = threading.get_ident()
        self._making = {key: one for key, one in self._making.items() if one.thread == me}
        self._bytes = sum(one.nbytes for one in self._kept.values())

    def _found(self, key: Hashable, gone: list[Kept]) -> Kept | None:
        known = self._kept.get(key)
        if known is None:
            return None
        age = self.limits.max_age
        if age is not None and time.monotonic() - known.since > age:
            gone.append(self._remove(key))
            self._count(removed=1)
            return None
        self._kept.move_to_end(key)
        return known

    def _close_later(self, gone: list[Kept]) -> None:
        if self._close:
            report(close_later(gone, self._close, self.name))

    def _made(
        self, key: Hashable, make: Callable[[], Any], generation: int, hashed_ns: int
    ) -> tuple[Any, Counted]:
        self._close_later([])
        memory, began = resident_bytes(), time.perf_counter_ns()
        value = make()
        made_ns = time.perf_counter_ns() - began
        if self._close and not is_counted(value):
            raise TypeError(
                f"{self.name} returned {value!r}, of type {type(value).__name__}. With close=, "
                "return an object of a class of its own, for instance one that holds the number of "
                "the handle, so that its last use is known."
            )
        kept = Kept(value, 0, made_ns, time.monotonic())
        try:
            kept.nbytes = self._bytes_of(value, resident_bytes() - memory)
        except BaseException:
            del value
            self._close_later([kept])
            raise
        del value
        with self._lock:
            gone = self._keep(key, kept) if generation == self._generation else [kept]
            happened = self._count(computed=1, removed=len(gone), took=made_ns, hashed=hashed_ns)
        value = kept.value
        del kept
        self._close_later(gone)
        return value, happened

    def _bytes_of(self, value: Any, growth: int) -> int:
        if self._size is not None:
            name = getattr(self._size, "__name__", type(self._size).__name__)
            given = on_one_line(f"size={name}")
            try:
                nbytes = self._size(value)
            except Exception as error:
                error.add_note(f"raised by {given}, for an object of {self.name}")
                raise
            if isinstance(nbytes, numbers.Real) and 0 <= nbytes < float("inf"):
                return int(nbytes)
            raise ValueError(
                f"{given} returned {reprlib.repr(nbytes)} for an object of {self.name}. Return its "
                "bytes, at least 0."
            )
        known = visible_bytes(value)
        if known is not None:
            return known
        # Memory that was free before grows no process: what one object took, others may take too.
        with self._lock:
            self._largest_growth = max(self._largest_growth, growth)
            return self._largest_growth

    def _keep(self, key: Hashable, kept: Kept) -> list[Kept]:
        """Keep one more object; return those that the limits push out."""
        self._kept[key] = kept
        self._bytes += kept.nbytes
        gone = []
        while self._bytes > self.limits.max_bytes or len(self._kept) > self.limits.max_objects:
            gone.append(self._remove(next(iter(self._kept))))
        return gone

    def _remove(self, key: Hashable) -> Kept:
        kept = self._kept.pop(key)
        self._bytes -= kept.nbytes
        return kept

    def _count(
        self, computed: int = 0, found: int = 0, removed: int = 0, took: int = 0,
        saved: int = 0, hashed: int = 0,
    ) -> Counted:  # fmt: skip
        happened = Counted(computed, found, removed, took, saved, hashed)
        self.counted = self.counted.plus(happened)
        return happened
