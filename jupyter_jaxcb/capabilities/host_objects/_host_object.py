"""`host_object`: what host functions compute once and use in many calls."""

from __future__ import annotations

import atexit
import functools
import inspect
import math
import numbers
import os
import reprlib
import sys
import threading
import time
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, overload

from ...recording import active, on_one_line, visible
from ._content import default_limit, key_of, parsed, resident_bytes, visible_bytes

_P = ParamSpec("_P")
_T = TypeVar("_T")
_AGAIN_SECONDS = 1.0  # a waiting thread runs Python so often, so that it can be interrupted


class HostObjectInfo(NamedTuple):
    """What happened to the objects of one function so far, as `HostObject.info` returns it.

    Attributes:
        computed: number of calls of the function.
        found: number of times that a kept object was used instead.
        removed: number of objects pushed out by `max_bytes`, `max_objects` or `max_age`.
        objects: number of objects that are kept now.
        nbytes: their memory in bytes.
        seconds_computing: time in the function, in seconds.
        seconds_saved: time that the found objects once took, for each time that one was found.
        seconds_hashing: time to hash arguments, in seconds.
    """

    computed: int
    found: int
    removed: int
    objects: int
    nbytes: int
    seconds_computing: float
    seconds_saved: float
    seconds_hashing: float


class _Entry:
    """An object, from the start of its computation by `thread` until it is closed.

    `close` closes it; None: nothing does, or in a forked child, its parent does.
    """

    def __init__(self, name: str, close: Any, value: Any = None) -> None:
        self.name, self.close, self.value, self.thread = name, close, value, threading.get_ident()
        self.since = 0.0
        self.made_ns = self.nbytes = 0

    def references(self) -> int:
        """Return the number of references to the object."""
        return sys.getrefcount(self.value)


_ALONE = _Entry("", None, object()).references()  # with no reference but that of `_Entry`
# The lock of all host objects. It is held for lookups only, never while user code runs. Reentrant,
# because a destructor run by the garbage collector may come here.
_lock = threading.RLock()
_changed = threading.Condition(_lock)  # an object was made, or will not be kept
_waits_for: dict[int, tuple[HostObject[..., Any], Hashable]] = {}  # by thread
_removed: list[_Entry] = []  # not closed yet
# Functions of a worker's tasks find the objects of earlier tasks by these.
_known: weakref.WeakValueDictionary[str, HostObject[..., Any]] = weakref.WeakValueDictionary()


class HostObject(Generic[_P, _T]):
    """A function whose results are kept on the host, see `host_object`."""

    def __init__(
        self, function: Callable[_P, _T], options: dict[str, Any], token: str | None = None
    ) -> None:
        self._function, self._options = function, options
        self._token = token or uuid.uuid4().hex
        self._name = on_one_line(getattr(function, "__name__", type(function).__name__))
        self._kept: OrderedDict[Hashable, _Entry] = OrderedDict()  # used least recently first
        self._making: dict[Hashable, _Entry] = {}
        self._bytes = 0
        self._largest_growth = 0  # of the process's memory, by making one object
        # computed, found and removed objects; time in the function, saved and for hashing, in ns
        self._counts = [0] * 6
        self.__qualname__: str = self._name
        functools.update_wrapper(self, function)
        try:
            self._signature: inspect.Signature | None = inspect.signature(function)
        except (TypeError, ValueError):  # of some functions in C
            self._signature = None
        weakref.finalize(self, _drop, self._kept)
        _known[self._token] = self

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return the kept object for arguments of this content, or compute it."""
        began = time.perf_counter_ns()
        signature, arguments = self._signature, (args, kwargs)
        # All arguments, by position where possible, however the call spells them.
        if signature is not None and (kwargs or len(args) != len(signature.parameters)):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            arguments = bound.args, bound.kwargs
        key = tuple(
            (place, key_of(x, f"argument {place} of {self._name}", self._options["compare"]))
            for place, x in (*enumerate(arguments[0]), *sorted(arguments[1].items()))
        )
        hashing_ns = time.perf_counter_ns() - began
        value, *counts = self._get(key, *arguments)
        counts.append(hashing_ns)
        with _lock:
            self._counts = [x + y for x, y in zip(self._counts, counts, strict=True)]
        recorder = active()
        if recorder is not None:
            recorder.object_used(self.__qualname__, counts, self._bytes)
        return value

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind a method; its instance is an argument like others."""
        return self if instance is None else functools.partial(self, instance)

    def _get(self, key: Hashable, args: Any, kwargs: Any) -> tuple[Any, int, int, int, int, int]:
        """Return the object for `key`, kept or made, and what to add to `_counts`."""
        entry, removed = _Entry(self._name, self._options["close"]), 0
        try:
            with _lock:
                self._wait(key)
                kept = self._kept.get(key)
                if kept and time.monotonic() - kept.since <= self._options["max_age"]:
                    self._kept.move_to_end(key)
                    return kept.value, 0, 1, 0, 0, kept.made_ns
                if kept:
                    self._remove(key)
                    removed = 1
                self._making[key] = entry
            _drop({})
            self._make(entry, args, kwargs)
            value = entry.value  # refers to the object, so it is not closed here
            with _lock:
                if self._making.get(key) is entry:
                    self._kept[key] = entry
                    self._bytes += entry.nbytes
                else:  # all were removed meanwhile
                    _removed.append(entry)
                    removed += 1
                most, most_bytes = self._options["max_objects"], self._options["max_bytes"]
                while len(self._kept) > most or self._bytes > most_bytes:
                    self._remove(next(iter(self._kept)))
                    removed += 1
            _drop({})
            return value, 1, 0, removed, entry.made_ns, 0
        finally:
            with _lock:
                if self._making.get(key) is entry:
                    del self._making[key]
                    _changed.notify_all()

    def _wait(self, key: Hashable) -> None:
        """Wait while another thread makes the object for `key`."""
        thread = threading.get_ident()
        try:
            while key not in self._kept and key in self._making:
                _waits_for[thread] = wanted = self, key
                while wanted and (making := wanted[0]._making.get(wanted[1])):
                    if making.thread == thread:
                        raise RuntimeError(
                            f"{self._name} needs its own object: it calls itself with equal "
                            "arguments, also through the functions of other host objects. Compute "
                            "the object without it, or call it with other arguments."
                        )
                    wanted = _waits_for.get(making.thread)
                _changed.wait(_AGAIN_SECONDS)
        finally:
            _waits_for.pop(thread, None)

    def _make(self, entry: _Entry, args: Any, kwargs: Any) -> None:
        """Make the object of an entry, and measure it."""
        function: Any = self._function
        memory, began = resident_bytes(), time.perf_counter_ns()
        entry.value = function(*args, **kwargs)
        entry.made_ns, entry.since = time.perf_counter_ns() - began, time.monotonic()
        value = entry.value
        if entry.close and (value is None or isinstance(value, int | str | bytes | tuple)):
            raise TypeError(
                f"{self._name} returned {value!r}, of type {type(value).__name__}. With "
                "close=, return an object of a class of its own, for instance one that holds the "
                "number of the handle, so that its last use is known."
            )
        del value  # the object is closed below if nothing else refers to it
        try:
            entry.nbytes = self._bytes_of(entry.value, resident_bytes() - memory)
        except BaseException:
            _removed.append(entry)
            _drop({})
            raise

    def _bytes_of(self, value: Any, growth: int) -> int:
        size: Any = self._options["size"]
        if size is None:
            nbytes = visible_bytes(value)
            if nbytes is not None:
                return nbytes
            # Free memory does not grow the process: what one object took, others may take too.
            self._largest_growth = max(self._largest_growth, growth)
            return self._largest_growth
        which = on_one_line(f"size={getattr(size, '__name__', type(size).__name__)}")
        try:
            nbytes = size(value)
        except Exception as error:
            error.add_note(f"raised by {which}, for an object of {self._name}")
            raise
        if isinstance(nbytes, numbers.Real) and 0 <= float(nbytes) < float("inf"):
            return int(float(nbytes))
        raise ValueError(
            f"{which} returned {reprlib.repr(nbytes)} for an object of {self._name}. Return its "
            "bytes, at least 0."
        )

    def _remove(self, key: Hashable) -> None:
        entry = self._kept.pop(key)
        self._bytes -= entry.nbytes
        _removed.append(entry)

    def info(self) -> HostObjectInfo:
        """Return how often objects were computed and found, and what is kept now."""
        with _lock:
            computed, found, removed, *times = self._counts
            kept = len(self._kept), self._bytes
        return HostObjectInfo(computed, found, removed, *kept, *(ns / 1e9 for ns in times))

    def clear(self) -> None:
        """Remove all objects, and close them, each as soon as nothing refers to it.

        Raises:
            ExceptionGroup: `close` failed; all other objects were closed.
        """
        with _lock:
            self._bytes, self._making = 0, {}  # what is being made will not be kept
            _changed.notify_all()
            _removed.extend(self._kept.values())
            self._kept.clear()
        errors = _close_unused()
        if errors:
            raise ExceptionGroup(f"closing objects of {self._name} failed", errors)

    def __repr__(self) -> str:
        return f"<host object {self._name}: {len(self._kept):,} kept, {self._bytes:,} bytes>"

    def __reduce__(self) -> Any:
        name = self.__qualname__
        module = sys.modules.get(self.__module__)
        if self.__module__ != "__main__" and getattr(module, name, None) is self:
            return name
        return _in_this_process, (self._token, self._function, self._options)


def _in_this_process(token: str, function: Any, options: dict[str, Any]) -> HostObject[..., Any]:
    return _known.get(token) or HostObject(function, options, token)


def _close_unused(all_of_them: bool = False) -> list[Exception]:
    """Close removed objects, as far as nothing refers to them; return the errors of `close`."""
    ready: list[_Entry] = []
    used: list[_Entry] = []
    errors = []
    try:
        with _lock:
            while _removed:  # what is taken by `pop` is closed here alone
                entry = _removed.pop()
                is_unused = entry.close is None or entry.references() <= _ALONE
                (ready if is_unused or all_of_them else used).append(entry)
            _removed.extend(used)
            used = []
        while ready:
            entry = ready.pop()
            try:
                if entry.close is not None:
                    entry.close(entry.value)
            except Exception as error:
                words = f"This happened while an object of {entry.name} was closed."
                error.add_note(visible(words))
                errors.append(error)
    finally:  # after an interrupt
        with _lock:
            _removed.extend(ready + used)
    return errors


def _drop(objects: dict[Hashable, _Entry], all_of_them: bool = False) -> None:
    """Remove these objects; report errors of `close` as Python reports those of threads."""
    with _lock:
        _removed.extend(objects.values())
        objects.clear()
    for error in _close_unused(all_of_them):
        facts = type(error), error, error.__traceback__, threading.current_thread()
        threading.excepthook(threading.ExceptHookArgs(facts))


@atexit.register
def _close_at_exit() -> None:
    for host_object in list(_known.values()):
        _drop(host_object._kept)
    _drop({}, all_of_them=True)


def _in_forked_child() -> None:
    """Go on with the one thread that the child has; the objects are its parent's to close."""
    global _lock, _changed
    _lock = threading.RLock()
    _changed = threading.Condition(_lock)
    _removed.clear()
    _waits_for.clear()
    thread = threading.get_ident()
    for host_object in list(_known.values()):
        for entry in host_object._kept.values():
            entry.close = None
        making = host_object._making.items()
        host_object._making = {key: entry for key, entry in making if entry.thread == thread}


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)


@overload
def host_object(function: Callable[_P, _T], /) -> HostObject[_P, _T]: ...
@overload
def host_object(
    *, max_bytes: int | str | None = None, max_objects: int = 1024, max_age: float | None = None,
    size: Callable[[Any], int] | None = None, close: Callable[[Any], object] | None = None,
    compare: bool = False,
) -> Callable[[Callable[_P, _T]], HostObject[_P, _T]]: ...  # fmt: skip
def host_object(
    function: Callable[..., Any] | None = None,
    /,
    *,
    max_bytes: int | str | None = None,
    max_objects: int = 1024,
    max_age: float | None = None,
    size: Callable[[Any], int] | None = None,
    close: Callable[[Any], object] | None = None,
    compare: bool = False,
) -> Any:
    """Keep what a function returns on the host: a factorization, an open file, a solver's context.

    Call the function inside host functions, with the arrays that its object depends on. Arguments
    of equal content, by position or by name, give the same object: in the forward and the backward
    pass, in each step of a loop, for each batch element, in every thread. Two threads that need the
    same object compute it once. Nothing of this is visible to JAX, so no transformation, exception
    or cache of compiled programs can free or leak an object. It lives until a limit pushes out the
    object that was not used for longest, until `HostObject.clear`, or until the cell that defines
    it runs again.

    Each worker of an executor in other processes has objects of its own.

    Args:
        function: the function that computes an object; leave it out to pass options.
        max_bytes: the memory that objects may take: bytes, or a string such as ``"1 GB"``; by
            default an eighth of the machine's memory. An object that is larger is not kept.
        max_objects: the number of objects to keep.
        max_age: the seconds after which an object is computed again; None: never.
        size: returns the bytes of an object. By default these are the bytes of its arrays and
            attributes, as far as Python can see them. Otherwise the growth of the process while
            objects were computed is used, the largest one so far (on Linux; elsewhere 0).
        close: called once with each object that is not kept any longer, when no variable refers to
            it any more; when Python ends, with all others. Keep a reference to the object itself
            while you use what it holds. Its errors go to `threading.excepthook`.
        compare: keep the arguments, and compare arrays in full. By default arrays are equal if
            the 128 bits of their XXH3 hash, their shapes and dtypes are.

    Returns:
        A `HostObject`: call it as the function; `info()` counts its uses, `clear()` removes
        all objects.

    Raises:
        ValueError: a limit is not a number above zero; when it is called: `size` returned a
            negative number.
        RuntimeError: when it is called: the function needs the object that it computes.
        TypeError: `function`, `size` or `close` is not callable; when it is called: an argument has
            no content to compare (pass the arrays that it is made of), is traced by JAX, or the
            object cannot be closed.

    >>> import numpy as np, jax, jupyter_jaxcb as jaxcb
    >>> @jaxcb.host_object
    ... def inverse(a):
    ...     return np.linalg.inv(a)
    >>> @jaxcb.pure(result="b")
    ... def solve(a, b):
    ...     return (inverse(a) @ b).astype(b.dtype)
    >>> a = np.array([[2.0, 0.0], [0.0, 4.0]], np.float32)
    >>> solve(a, np.ones(2, np.float32)) + jax.jit(solve)(a, np.zeros(2, np.float32))
    Array([0.5 , 0.25], dtype=float32)
    >>> inverse.info().computed, inverse.info().found
    (1, 1)
    """
    for name, limit, kind, words in (
        ("max_objects", max_objects, numbers.Integral,
         "a number of objects above zero. Pass a whole number, as in max_objects=8."),
        ("max_age", 1 if max_age is None else max_age, numbers.Real,
         "a number of seconds above zero. Pass one, as in max_age=60, or None to keep objects "
         "however old they are."),
    ):  # fmt: skip
        if isinstance(limit, bool) or not isinstance(limit, kind) or not limit > 0:
            raise ValueError(f"{name}={limit!r} is not {words}")
    for name, called in (("size", size), ("close", close)):
        if called is not None and not callable(called):
            raise TypeError(
                f"{name}={called!r} is not a function. Pass a function of the object, or drop "
                f"{name}=."
            )
    options = {
        "max_bytes": default_limit() if max_bytes is None else parsed(max_bytes),
        "max_objects": max_objects, "max_age": math.inf if max_age is None else max_age,
        "size": size, "close": close, "compare": compare,
    }  # fmt: skip

    def decorated(function: Any) -> HostObject[..., Any]:
        if not callable(function):
            raise TypeError(
                f"host_object needs a function, not {on_one_line(repr(function))}. Put "
                "@jaxcb.host_object above one."
            )
        name = getattr(function, "__qualname__", "")
        earlier = getattr(function, "__globals__", {}).get(name)
        if isinstance(earlier, HostObject):  # its cell runs again
            earlier.clear()
        return HostObject(function, options)

    return decorated if function is None else decorated(function)
