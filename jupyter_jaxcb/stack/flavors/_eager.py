"""What eager calls need: arrays of the host, checks, and errors."""

from __future__ import annotations

from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from ...recording import VmapLevel, active
from .. import elision
from ..call import ArrayNames, HostCallback, to_aval
from ..errors import HostCallError, host_error, is_a
from ..lowering import eager_fact

_PYTHON_NUMBER = np.dtype(np.float32)  # any dtype will do: a Python number is not a PRNG key


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


def device_of(args: tuple[Any, ...]) -> Any:
    """Return the device that an operand is committed to, for the results; None if there is none."""
    for x in args:
        if isinstance(x, jax.Array) and x.committed:
            (device,) = x.devices()
            return device
    return None


def can_call_directly(args: tuple[Any, ...], result_avals: tuple[Any, ...]) -> bool:
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


def check_numbers(flavor: str, arrays: tuple[np.ndarray, ...]) -> None:
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


def to_host(x: Any) -> np.ndarray:
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
