"""strict_errors(): one class for the error of a failed host function, at the price of speed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import jax

from .. import jax_compat

_undo: Callable[[], None] | None = None
_lock = threading.Lock()


def strict_errors(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """Makes JaxRuntimeError the class of every failed host function, from its first call on.

    JAX runs a program without effects, one with pure callbacks only, by C++ alone from its second
    call on, and C++ raises a builtin ValueError. Strict programs keep coming through Python, which
    takes some 40 µs more a call.

    It counts for all threads, and for programs whose second call is still to come;
    `jax.clear_caches` makes that true of all.

    Args:
        on: whether they are to be strict.

    Returns:
        A context manager that puts back what was before; to be ignored if it is to stay.

    Raises:
        RuntimeError: this version of JAX has another way to its C++; install one that the error
            names.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jax.jit
    ... def f(x):
    ...     return jaxcb.pure_callback(lambda x: np.int32(12 // int(x)), x, x)
    >>> with jaxcb.strict_errors():
    ...     for x in (4, 3, 0):
    ...         try:
    ...             print(f(x))
    ...         except jax.errors.JaxRuntimeError as error:
    ...             print(repr(error.__cause__))
    3
    4
    ZeroDivisionError('integer division or modulo by zero')
    """
    before = _undo is not None
    _set(on)
    return _back_to(before)


@contextlib.contextmanager
def _back_to(before: bool) -> Iterator[None]:
    try:
        yield
    finally:
        _set(before)


def _set(on: bool) -> None:
    global _undo
    with _lock:
        if on and _undo is None:
            _undo = jax_compat.stay_in_python()
            if _undo is None:
                raise RuntimeError(
                    f"cannot make errors strict: JAX {jax.__version__} decides elsewhere which "
                    "programs C++ runs. Install JAX 0.8.0 to 0.12.0, or look at "
                    "jaxcb.host_error(error), whatever its class."
                )
        elif not on and _undo is not None:
            _undo()
            _undo = None
