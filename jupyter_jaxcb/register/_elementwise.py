"""Call functions of single numbers for each element of arrays, like the ufuncs of NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Bind = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def elementwise(bind: Bind, name: str, count: int) -> Bind:
    """Return `bind`, which takes `count` numbers, for arrays that are broadcast together."""

    def call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        if len(args) != count or kwargs:
            raise TypeError(
                f"{name} takes {count} positional arguments, but got {len(args)}"
                f"{' and ' * bool(kwargs)}{', '.join(kwargs)}"
            )
        if not args:
            return bind((), {})
        given = jnp.result_type(*args)
        arrays = [_array(x, given) for x in args]
        shape = jnp.broadcast_shapes(*(x.shape for x in arrays))
        if not shape:
            return bind(tuple(arrays), {})
        flat = [x if not x.shape else jnp.broadcast_to(x, shape).reshape(-1) for x in arrays]
        axes = [0 if x.shape else None for x in flat]
        found = jax.vmap(lambda *numbers: bind(numbers, {}), in_axes=axes)(*flat)
        return jax.tree.map(lambda y: y.reshape(shape), found)

    return call


def _array(x: Any, given: Any) -> Any:
    """Return an argument as an array; a Python float gets the precision of the other arguments."""
    return jnp.asarray(x, jnp.finfo(given).dtype if type(x) is float else None)


def declared_by(function: Any) -> Callable[..., Any]:
    """Return what a C function returns, as a function of its arguments.

    It computes in its own precision. JAX gets the floating-point dtype of the arguments, as from a
    ufunc; or the default one if they are integers.
    """

    def declared(*arrays: Any) -> Any:
        shape = jnp.broadcast_shapes(*(array.shape for array in arrays))
        dtypes = [array.dtype for array in arrays]
        given = jnp.result_type(*dtypes) if dtypes else np.dtype(int)
        found = []
        for dtype in function.results(dtypes):
            dtype = jax.dtypes.canonicalize_dtype(dtype)
            if jnp.issubdtype(given, jnp.inexact) and jnp.issubdtype(dtype, jnp.inexact):
                dtype = _with_precision_of(dtype, given)
            found.append(jax.ShapeDtypeStruct(shape, dtype))
        return found[0] if len(found) == 1 else tuple(found)

    return declared


def _with_precision_of(dtype: Any, given: Any) -> Any:
    """Return `dtype`, real or complex, in single precision if `given` is."""
    if jnp.finfo(given).bits > 32:
        return dtype
    return jnp.complex64 if jnp.issubdtype(dtype, jnp.complexfloating) else jnp.float32
