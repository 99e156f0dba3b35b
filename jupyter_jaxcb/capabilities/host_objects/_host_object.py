"""`host_object`: what host functions compute once and use in many calls."""

from __future__ import annotations

import functools
import inspect
import sys
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, ParamSpec, TypeVar, overload

from ...recording import active, on_one_line
from ._key import key_of
from ._size import default_limit, parsed
from ._store import Limits, Store

_P = ParamSpec("_P")
_T = TypeVar("_T")


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


class HostObject(Generic[_P, _T]):
    """A function whose results are kept on the host, see `host_object`."""

    def __init__(
        self, function: Callable[_P, _T], options: dict[str, Any], token: str | None = None
    ) -> None:
        self._function, self._options = function, options
        self._token = token or uuid.uuid4().hex
        self._compare = options["compare"]
        name = on_one_line(getattr(function, "__name__", type(function).__name__))
        limits = Limits(options["max_bytes"], options["max_objects"], options["max_age"])
        self._store = Store(name, limits, options["size"], options["close"])
        self.__qualname__: str = name
        functools.update_wrapper(self, function)
        self._signature = _signature_of(function)
        weakref.finalize(self, self._store.clear)
        _known[self._token] = self

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return the kept object for arguments of this content, or compute it."""
        store = self._store
        began = time.perf_counter_ns()
        args, kwargs = self._spelled_out(args, kwargs)
        key = key_of(store.name, args, kwargs, self._compare)
        hashed_ns = time.perf_counter_ns() - began
        value, happened = store.get(key, lambda: self._function(*args, **kwargs), hashed_ns)
        recorder = active()
        if recorder is not None:
            recorder.objects.add(self.__qualname__, happened, store.totals()[1])
        return value

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind a method; its instance is an argument like others."""
        return self if instance is None else functools.partial(self, instance)

    def _spelled_out(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return all arguments, by position where possible, however the call spells them."""
        signature = self._signature
        if signature is None or (not kwargs and len(args) == len(signature.parameters)):
            return args, kwargs
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args, bound.kwargs

    def info(self) -> HostObjectInfo:
        """Return how often objects were computed and found, and what is kept now."""
        objects, nbytes, counted = self._store.totals()
        computed, found, removed, *times = counted
        return HostObjectInfo(
            computed, found, removed, objects, nbytes, *(ns / 1e9 for ns in times)
        )

    def clear(self) -> None:
        """Remove all objects, and close them, each as soon as nothing refers to it.

        Raises:
            ExceptionGroup: `close` failed; all other objects were closed.
        """
        errors = self._store.clear()
        if errors:
            raise ExceptionGroup(f"closing objects of {self._store.name} failed", errors)

    def __repr__(self) -> str:
        objects, nbytes, _ = self._store.totals()
        return f"<host object {self._store.name}: {objects:,} kept, {nbytes:,} bytes>"

    def __reduce__(self) -> Any:
        module = sys.modules.get(self.__module__)
        name = self.__qualname__
        if self.__module__ != "__main__" and getattr(module, name, None) is self:
            return name
        return _in_this_process, (self._token, self._function, self._options)


# Functions of a worker's tasks find the objects of earlier tasks by these.
_known: weakref.WeakValueDictionary[str, HostObject[..., Any]] = weakref.WeakValueDictionary()


def _in_this_process(token: str, function: Any, options: dict[str, Any]) -> HostObject[..., Any]:
    return _known.get(token) or HostObject(function, options, token)


@overload
def host_object(function: Callable[_P, _T], /) -> HostObject[_P, _T]: ...
@overload
def host_object(
    *,
    max_bytes: int | str | None = None,
    max_objects: int = 1024,
    max_age: float | None = None,
    size: Callable[[Any], int] | None = None,
    close: Callable[[Any], object] | None = None,
    compare: bool = False,
) -> Callable[[Callable[_P, _T]], HostObject[_P, _T]]: ...
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
    _check_limits(max_objects, max_age)
    for name, called in (("size", size), ("close", close)):
        if called is not None and not callable(called):
            raise TypeError(
                f"{name}={called!r} is not a function. Pass a function of the object, or drop "
                f"{name}=."
            )
    limit = default_limit() if max_bytes is None else parsed(max_bytes)
    options = {
        "max_bytes": limit, "max_objects": max_objects, "max_age": max_age, "size": size,
        "close": close, "compare": compare,
    }  # fmt: skip
    return _kept(options) if function is None else _kept(options)(function)


def _check_limits(max_objects: Any, max_age: Any) -> None:
    is_number = isinstance(max_objects, int) and not isinstance(max_objects, bool)
    if not is_number or max_objects < 1:
        raise ValueError(
            f"max_objects={max_objects!r} is not a number of objects above zero. Pass a whole "
            "number, as in max_objects=8."
        )
    if max_age is None:
        return
    if not isinstance(max_age, int | float) or not max_age > 0:
        raise ValueError(
            f"max_age={max_age!r} is not a number of seconds above zero. Pass one, as in "
            "max_age=60, or None to keep objects however old they are."
        )


def _kept(options: dict[str, Any]) -> Callable[[Any], HostObject[..., Any]]:
    def decorated(function: Any) -> HostObject[..., Any]:
        if not callable(function):
            raise TypeError(
                f"host_object needs a function, not {on_one_line(repr(function))}. Put "
                "@jaxcb.host_object above one."
            )
        _clear_earlier(function)
        return HostObject(function, options)

    return decorated


def _signature_of(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):  # of some functions in C
        return None


def _clear_earlier(function: Callable[..., Any]) -> None:
    """Remove the objects of a function that this one replaces, as its cell runs again."""
    name = getattr(function, "__qualname__", "")
    earlier = getattr(function, "__globals__", {}).get(name)
    if isinstance(earlier, HostObject):
        earlier.clear()
