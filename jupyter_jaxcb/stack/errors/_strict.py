"""Make every failed host function raise JaxRuntimeError, at some cost in speed."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

import jax

from ... import jax_compat

_undo: Callable[[], None] | None = None
_lock = threading.Lock()


def strict_errors(on: bool = True) -> contextlib.AbstractContextManager[None]:
    """Make every failed host function raise JaxRuntimeError, in every call.

    From the second call on, JAX's C++ fast path runs programs without effects (with only pure
    callbacks) and raises a builtin ValueError if a host function fails. Strict errors keep these
    programs off the fast path, which costs about 40 µs a call.

    The setting applies to all threads, and to programs that have not been called twice yet. Call
    `jax.clear_caches` to apply it to all programs.

    Args:
        on: whether to make errors strict.

    Returns:
        A context manager that restores the previous setting on exit. To keep the setting, ignore
        it.

    Raises:
        RuntimeError: if this version of JAX is not supported. Install one that the error names.

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
            if name := jax_compat.missing("interrupts"):
                raise RuntimeError(
                    f"cannot make errors strict: JAX {jax.__version__} is not supported, as it has "
                    f"no {name}. Install JAX 0.10.0 to 0.12.0, or use jaxcb.host_error(error), "
                    "which works for every class of error."
                )
            _undo = jax_compat.stay_in_python()
        elif not on and _undo is not None:
            _undo()
            _undo = None
