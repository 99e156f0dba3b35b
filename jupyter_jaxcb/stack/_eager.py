"""Calls outside of any trace: straight to the host function, nothing compiled."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import Any, NoReturn

import jax
import numpy as np

from ..recording import Aval, LoweredSite, Site, VmapLevel
from . import _jax
from ._callback import HostCallback
from ._dispatch import build_crossing
from ._errors import HostCallError, host_error
from ._lowering import to_aval

_PYTHON_NUMBER = np.dtype(np.float32)  # any dtype will do: Python's numbers are no keys
_facts: weakref.WeakValueDictionary[tuple, LoweredSite] = weakref.WeakValueDictionary()


def eager(
    primitive: _jax.Primitive,
    *args: Any,
    callback: HostCallback,
    result_avals: tuple[Any, ...],
    levels: tuple[VmapLevel, ...],
    effect: _jax.Effect | None = None,
    fail: Callable[[HostCallError], NoReturn],
    **params: Any,
) -> list[Any]:
    """The impl rule of every flavor.

    On one device the host function is called directly, on the calling thread: no compilation,
    nothing cached, and the user's own traceback. Operands over several devices (and ``sharding=``,
    and typed PRNG keys) take the compiled path.

    Args:
        primitive: of the flavor.
        *args: concrete operands.
        callback: the host function.
        result_avals: declared.
        levels: the vmaps it went through.
        effect: an ordered effect: wait for what this thread dispatched before under it.
        fail: raises what the user is to see, given what a failing crossing raised.
        **params: the other static parameters of the primitive.
    """
    device = only_device(args)
    keys = not all(isinstance(_dtype(x), np.dtype) for x in (*args, *result_avals))
    if device is None or keys or params.get("sharding") is not None:
        return _jax.apply_primitive(
            primitive, *args, callback=callback, result_avals=result_avals, levels=levels, **params
        )
    if effect is not None and not _inside_host_call():
        _jax.wait_for_ordered(effect)
    operands = [_to_host(x) for x in args]
    cross = build_crossing(
        callback,
        _fact(
            callback.bind.site,
            tuple(to_aval(x) for x in operands),
            tuple(to_aval(aval) for aval in result_avals),
            levels,
        ),
        [aval.dtype for aval in result_avals],
    )
    arrays, failed = (), None
    try:
        arrays = cross(*operands)
    except HostCallError as error:
        failed = error
    if failed is not None:  # out here, so that it does not become the context of what is raised
        fail(failed)
    # A copy: the host function may go on writing into the array it answered with.
    return [jax.device_put(np.array(array), device[0]) for array in arrays]


def raise_runtime_error(error: HostCallError) -> NoReturn:
    """Raises the class that JAX's pure and io callbacks raise, from the user's exception."""
    raise jax.errors.JaxRuntimeError(f"INTERNAL: {error}") from host_error(error)


def raise_itself(error: HostCallError) -> NoReturn:
    """Raises the user's exception, as JAX's debug callbacks do eagerly."""
    raise host_error(error) or error


def _fact(
    site: Site,
    operands: tuple[Aval, ...],
    results: tuple[Aval, ...],
    levels: tuple[VmapLevel, ...],
) -> LoweredSite:
    """One fact for all equal eager calls, so that a loop of them is one row in a table."""
    key = (site, operands, results, levels)
    fact = _facts.get(key)
    if fact is None:
        fact = _facts[key] = LoweredSite(site, None, -1, operands, results, levels)
    return fact


def only_device(args: tuple[Any, ...]) -> tuple[Any] | None:
    """The one device of `args`, in a tuple; (None,) if none is committed, None for several."""
    committed = None
    for x in args:
        if isinstance(x, jax.Array):
            devices = x.devices()
            if len(devices) > 1:
                return None
            if x.committed:
                (committed,) = devices
    return (committed,)


def _dtype(x: Any) -> Any:
    return getattr(x, "dtype", _PYTHON_NUMBER)


def _to_host(x: Any) -> np.ndarray:
    """A read-only array that stays as it is, whatever becomes of `x`."""
    if isinstance(x, jax.Array):
        return np.asarray(x)
    array = np.array(x, jax.typeof(x).dtype)
    array.flags.writeable = False
    return array


def _inside_host_call() -> bool:
    """Whether a crossing is on this thread's stack: waiting for its program would hang."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code.co_name == "cross" and frame.f_globals.get("__name__", "").endswith(
            "stack._dispatch"
        ):
            return True
        frame = frame.f_back
    return False
