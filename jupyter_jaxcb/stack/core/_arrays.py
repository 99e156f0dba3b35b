"""What a host function gets: numpy arrays as they come, or JAX arrays on the local CPU.

And what is recorded of an array: its aval.
"""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path

from ...recording import Aval
from .. import jax_compat
from ._advice import nearest

ARRAYS = ("numpy", "jax")
_ALIGNMENT_BYTES = 64  # of memory that XLA's CPU client uses as it is
_COPIED_BY_XLA_BYTES = 100 * 1024  # smaller arrays are copied at once, by the thread that asks


def check_arrays(arrays: str) -> None:
    """Raises ValueError for what is not one of `ARRAYS`."""
    __tracebackhide__ = True
    if arrays not in ARRAYS:
        raise ValueError(
            f"unknown arrays {arrays!r}{nearest(str(arrays), ARRAYS)} Pass arrays= one of "
            "'numpy' or 'jax', the kind of arrays that the host function gets. To pass an argument "
            "of that name on, wrap the host function: lambda x: f(arrays=x)."
        )


def taking_jax_arrays(
    dtypes: Sequence[Any], *, without_mesh: bool
) -> Callable[[Callable], Callable]:
    """A wrapper of flat host functions: called with numpy arrays, they get JAX arrays.

    These are committed to the first local CPU device, which is the default device meanwhile, as
    with JAX's own callbacks. 64-bit values keep their width on threads that know nothing of x64,
    and PRNG keys are keys again.

    Args:
        dtypes: of the arguments, as JAX's avals have them.
        without_mesh: let the host function see no mesh, as JAX's debug callbacks do.

    Raises:
        RuntimeError: there is no CPU backend.
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
                if without_mesh:
                    around.enter_context(jax_compat.without_mesh())
                return function(*map(hand_over, operands, keys))

        return call

    return wrap


def is_big(aval: Aval, dtype: Any) -> bool:
    """Whether JAX, given such an array, leaves copying it to a thread of XLA's.

    It does if the array is this big and its memory not aligned. In a host function that thread may
    be the one that waits for the host function: JAX up to 0.10 then hangs for ever.
    """
    size = math.prod(aval.shape) * getattr(dtype, "itemsize", 8)
    return size >= _COPIED_BY_XLA_BYTES


def to_array(x: Any) -> Any:
    """`x` as a JAX array: weakly typed if it is a number of Python's; nothing is compiled.

    An array of float0, which JAX itself keeps in numpy, stays what it is.
    """
    if isinstance(x, jax.Array) or getattr(x, "dtype", None) == jax.dtypes.float0:
        return x
    # A copy: JAX may take the memory of a numpy array over, and its owner go on writing into it.
    return jax.device_put(aligned(np.array(x)) if isinstance(x, np.ndarray) else x)


def aligned(array: np.ndarray) -> np.ndarray:
    """`array`, or a copy of it, in memory that JAX takes over without copying; read-only."""
    if array.__array_interface__["data"][0] % _ALIGNMENT_BYTES == 0:
        return array
    copy = empty_aligned(array.shape, array.dtype)
    copy[...] = array
    copy.flags.writeable = False
    return copy


def aligning(adapt: Callable[[Callable], Callable]) -> Callable[[Callable], Callable]:
    """Lets the host function hand its operands to JAX, see `is_big`."""

    def align(function: Callable) -> Callable:
        call = adapt(function)
        return lambda *operands: call(*map(aligned, operands))

    return align


def empty_aligned(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """As `numpy.empty`, in memory that JAX takes over without copying."""
    size = math.prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT_BYTES, np.uint8)
    start = -memory.__array_interface__["data"][0] % _ALIGNMENT_BYTES
    return memory[start : start + size].view(dtype).reshape(shape)


def _local_cpu() -> Any:
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError as error:
        raise RuntimeError(
            'arrays="jax" found no local CPU device to put the arguments on: list "cpu" in the '
            "JAX_PLATFORMS environment variable (or the jax_platforms option), or leave arrays as "
            '"numpy", which needs no device.'
        ) from error


def check_leaves(tree: Any, taker: str) -> None:
    """Raises TypeError if a leaf of `tree` is no array; `taker` says who wants arrays alone."""
    __tracebackhide__ = True
    for path, leaf in tree_flatten_with_path(tree)[0]:
        if not is_array(leaf):
            where = f" at {keystr(path)}" if path else ""
            raise TypeError(
                f"{taker} takes arrays and numbers, but got {leaf!r}{where}: a "
                f"{type(leaf).__name__} is not a valid JAX type. Bind it with functools.partial."
            )


def is_array(leaf: Any) -> bool:
    """Whether JAX takes it for an array; what is none is a static argument."""
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    return True


def to_aval(aval: Any) -> Aval:
    """The aval of anything with shape and dtype, as a recorded fact."""
    return Aval(tuple(aval.shape), _dtype_name(aval.dtype))


_dtype_name = functools.cache(str)  # numpy composes it anew every time
