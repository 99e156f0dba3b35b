"""Eager calls: call the host function directly, without compiling anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from ... import jax_compat
from ...recording import VmapLevel, active
from .. import elision
from ..call import ArrayNames, HostCallback, aligned, names_operands, to_aval
from ..dispatch import CallPlan
from ..errors import HostCallError, host_error, is_a
from ..lowering import eager_fact
from ..trace import EAGER

if TYPE_CHECKING:
    from ._flavor import Flavor

_PYTHON_NUMBER = np.dtype(np.float32)  # any dtype will do: a Python number is not a PRNG key


def eager(
    flavor: Flavor,
    *args: Any,
    callback: HostCallback,
    result_avals: tuple[Any, ...],
    levels: tuple[VmapLevel, ...],
    **params: Any,
) -> list[Any]:
    """Apply a callback eagerly: the impl rule of every flavor.

    The host function is called directly, on the calling thread: nothing is compiled or cached, and
    the traceback is the user's own. Arrays on several devices take the compiled path instead.

    Args:
        flavor: the flavor.
        *args: concrete operands.
        callback: the host function.
        result_avals: the declared avals.
        levels: the vmap levels around the bind.
        **params: the other static parameters of the primitive.
    """
    __tracebackhide__ = True
    if callback.options.sharding is not None or not _can_call_directly(args, result_avals):
        return jax_compat.apply_primitive(
            flavor.primitive, *args, callback=callback, result_avals=result_avals, levels=levels,
            **params,
        )  # fmt: skip
    elision.executed(callback.bind)
    flavor.wait(callback.options)
    operands = [_to_host(x) for x in args]
    avals = tuple(to_aval(x) for x in operands)
    results = tuple(to_aval(aval) for aval in result_avals)
    recorder = active()
    # Without a recorder the fact is short-lived, and only an `AddedName` would be read.
    is_named = recorder is not None or names_operands(callback.host.current)
    names = ArrayNames.of(callback) if is_named else None
    marks = callback.facts(eager=True)
    fact = eager_fact(callback.bind, avals, results, levels, names=names, marks=marks)
    if levels and fact.is_empty:
        if recorder is not None:  # there is no host call to record
            recorder.lowered(fact)
        empty = [np.zeros(aval.shape, aval.dtype) for aval in result_avals]
        return [jax.device_put(array, _device_of(args)) for array in empty]
    dtypes = [operand.dtype for operand in operands], [aval.dtype for aval in result_avals]
    cross = flavor.build(is_eager=True, **params)(CallPlan(callback, fact, *dtypes))
    arrays, failed = (), None
    try:
        arrays = cross(*operands)
    except HostCallError as error:
        failed = error
    if failed is not None:  # outside of the except block, to raise without a __context__
        flavor.fail(failed)
    _check_numbers(callback.bind.site.flavor, arrays)
    device = _device_of(args) if arrays else None
    if not flavor.fresh:
        # The host function may keep writing into the array that it returned.
        arrays = tuple(aligned(np.array(array)) for array in arrays)
    return [jax.device_put(array, device) for array in arrays]


EAGER.add(eager.__code__)


def without_call(
    callback: HostCallback,
    args: tuple[Any, ...],
    result_avals: tuple[Any, ...],
    levels: tuple[VmapLevel, ...],
) -> list[Any]:
    """Apply a callback whose results are all empty, without calling it, as compiled programs do."""
    recorder = active()
    if recorder is not None:
        elision.executed(callback.bind)
        avals = tuple(to_aval(jax.typeof(x)) for x in args)
        results = tuple(map(to_aval, result_avals))
        names = ArrayNames.of(callback)
        marks = callback.facts(eager=True)
        fact = eager_fact(callback.bind, avals, results, levels, names=names, marks=marks)
        recorder.lowered(fact)
    return [jnp.zeros(aval.shape, aval.dtype) for aval in result_avals]


def raise_runtime_error(error: HostCallError) -> NoReturn:
    """Raise JaxRuntimeError from the user's exception, as JAX's pure and io callbacks do."""
    __tracebackhide__ = True
    original = host_error(error)
    if original is not None and not is_a(original, Exception):
        raise original  # Ctrl-C and SystemExit are not errors of the program
    raise jax.errors.JaxRuntimeError(f"INTERNAL: {error}") from original


def raise_itself(error: HostCallError) -> NoReturn:
    """Raise the user's exception itself, as eager debug callbacks of JAX do."""
    __tracebackhide__ = True
    original = host_error(error)
    raise error if original is None else original


def _device_of(args: tuple[Any, ...]) -> Any:
    """Return the device that an operand is committed to, for the results; None if there is none."""
    for x in args:
        if isinstance(x, jax.Array) and x.committed:
            (device,) = x.devices()
            return device
    return None


def _can_call_directly(args: tuple[Any, ...], result_avals: tuple[Any, ...]) -> bool:
    """Return whether the call needs no compiled program.

    It needs one for operands on several devices, shards of other processes, and PRNG keys.
    """
    if not all(
        isinstance(getattr(x, "dtype", _PYTHON_NUMBER), np.dtype) for x in (*args, *result_avals)
    ):
        return False
    arrays = [x for x in args if isinstance(x, jax.Array)]
    if not result_avals:
        return all(x.is_fully_addressable for x in arrays)
    committed = {device for x in arrays if x.committed for device in x.devices()}
    return len(committed) <= 1


def _check_numbers(flavor: str, arrays: tuple[np.ndarray, ...]) -> None:
    """Raise FloatingPointError for NaN and infinities if JAX's debug flags ask for it."""
    checks = (
        (jax.config.jax_debug_nans, np.isnan, "nan"),  # type: ignore[attr-defined]
        (jax.config.jax_debug_infs, np.isinf, "inf"),  # type: ignore[attr-defined]
    )
    for on, is_special, name in checks:
        if on and any(
            jnp.issubdtype(array.dtype, jnp.inexact) and is_special(array).any() for array in arrays
        ):
            raise FloatingPointError(f"invalid value ({name}) encountered in {flavor}_callback")


def _to_host(x: Any) -> np.ndarray:
    """Return a read-only NumPy array that later writes to `x` do not change."""
    if isinstance(x, jax.Array):
        return np.asarray(x)
    dtype = jax.typeof(x).dtype
    if dtype == jax.dtypes.float0:  # compiled programs pass float0 as bool
        array = np.zeros(np.shape(x), bool)
    else:
        array = np.array(x, dtype)
    array.flags.writeable = False
    return array
