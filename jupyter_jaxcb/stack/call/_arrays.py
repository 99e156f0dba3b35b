"""Convert the arrays that pass between XLA and host functions.

A host function takes NumPy arrays, or JAX arrays on the local CPU. A recording keeps only the aval
of an array.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from ... import jax_compat
from ...recording import Aval
from .. import options
from ._advice import did_you_mean

ARRAYS = ("numpy", "jax")
_ALIGNMENT_BYTES = 64  # XLA's CPU client takes memory with this alignment without copying it
_NUMBERS = (bool, int, float, complex, np.number, np.bool_)
_COPIED_BY_XLA_BYTES = 100 * 1024  # smaller arrays are copied at once, on the calling thread


@options.check("arrays")
def _check_arrays(arrays: Any) -> Any:
    __tracebackhide__ = True
    if arrays not in ARRAYS:
        raise ValueError(
            f"unknown arrays {arrays!r}{did_you_mean(str(arrays), ARRAYS)} Pass arrays='numpy' or "
            "arrays='jax', the kind of array the host function takes. If the host function itself "
            "has an argument of that name, wrap it: lambda x: f(arrays=x)."
        )
    return arrays


def taking_jax_arrays(dtypes: Sequence[Any]) -> Callable[[Callable], Callable]:
    """Return a decorator that passes JAX arrays to a host function called with NumPy arrays.

    As with JAX's own callbacks, the arrays are committed to the first local CPU device, which is
    also the default device during the call. 64-bit values keep their width on threads where x64 is
    not enabled, and PRNG key data is wrapped as keys again. The function does not see the mesh of
    the thread that calls it, as with JAX's own callbacks since 0.12.

    Args:
        dtypes: dtypes of the arguments, as in JAX's avals.

    Raises:
        RuntimeError: if there is no CPU backend.
    """
    cpu = _local_cpu()
    x64 = bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
    keys = [jax_compat.key_implementation(dtype) for dtype in dtypes]

    def hand_over(array: np.ndarray, key: str | None) -> jax.Array:
        on_cpu = jax.device_put(array, cpu)
        return on_cpu if key is None else jax.random.wrap_key_data(on_cpu, impl=key)

    def wrap(function: Callable) -> Callable:
        def call(*operands: np.ndarray) -> Any:
            with contextlib.ExitStack() as around:
                around.enter_context(jax.enable_x64(x64))
                around.enter_context(jax.default_device(cpu))
                around.enter_context(jax_compat.without_mesh())
                return function(*map(hand_over, operands, keys))

        return call

    return wrap


def is_big(aval: Aval, dtype: Any) -> bool:
    """Return whether JAX copies an array like this on one of XLA's threads.

    JAX does so if the array is at least this big and its memory is not aligned. Inside a host
    function, that thread may be the one that waits for the host function to return: JAX up to 0.10
    then deadlocks.
    """
    size = math.prod(aval.shape) * getattr(dtype, "itemsize", 8)
    return size >= _COPIED_BY_XLA_BYTES


def to_array(x: Any) -> Any:
    """Convert `x` to a JAX array without compiling anything; a Python number is weakly typed.

    An array of float0 is returned unchanged, because JAX itself keeps those in NumPy.
    """
    if isinstance(x, jax.Array) or getattr(x, "dtype", None) == jax.dtypes.float0:
        return x
    # A copy: JAX may take over the memory of a NumPy array, and its owner may still write to it.
    return jax.device_put(aligned(np.array(x)) if isinstance(x, np.ndarray) else x)


def number_to_array(x: Any) -> Any:
    """Return a number as a JAX array, anything else unchanged.

    JAX passes derivative rules the numbers that the user wrote: ``jax.jvp(f, (0.7,), (1.0,))``.
    """
    return jnp.asarray(x) if isinstance(x, _NUMBERS) else x


def aligned(array: np.ndarray) -> np.ndarray:
    """Return `array` if JAX can take its memory without copying, else a read-only aligned copy."""
    if array.__array_interface__["data"][0] % _ALIGNMENT_BYTES == 0:
        return array
    copy = empty_aligned(array.shape, array.dtype)
    copy[...] = array
    copy.flags.writeable = False
    return copy


def aligning(adapt: Callable[[Callable], Callable]) -> Callable[[Callable], Callable]:
    """Align the operands, so that the host function may pass them to JAX (see `is_big`)."""

    def align(function: Callable) -> Callable:
        call = adapt(function)
        return lambda *operands: call(*map(aligned, operands))

    return align


def empty_aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """As `numpy.empty`, but in memory that JAX can take over without copying."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT_BYTES, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGNMENT_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)


def _local_cpu() -> Any:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError as error:
        raise RuntimeError(
            'arrays="jax" needs a local CPU device for the arguments, and there is none. Add "cpu" '
            "to the JAX_PLATFORMS environment variable (or the jax_platforms option), or use "
            'arrays="numpy".'
        ) from error


def check_leaves(tree: Any, taker: str) -> None:
    """Raise TypeError if a leaf of `tree` is not an array; `taker` names the API in the message."""
    __tracebackhide__ = True
    for path, leaf in tree_flatten_with_path(tree)[0]:
        if not is_array(leaf):
            where = f" at {keystr(path)}" if path else ""
            raise TypeError(
                f"{taker} takes arrays and numbers, but got {leaf!r}{where}: "
                f"{type(leaf).__name__} is not a valid JAX type. Bind it with functools.partial."
            )


def is_array(leaf: Any) -> bool:
    """Return whether JAX accepts `leaf` as an array; anything else is a static argument."""
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    return True


def to_aval(aval: Any) -> Aval:
    """Return the aval of anything with a shape and a dtype, in the form recordings keep."""
    return Aval(tuple(aval.shape), _dtype_name(aval.dtype))


_dtype_name = functools.cache(str)  # NumPy builds the string on every call
