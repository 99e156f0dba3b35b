"""The pure flavor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..call import HostFunction
from ..options import Options, checked
from ..results import result_avals as declared
from ._bind import bind
from ._flavor import Flavor


class Pure(Flavor):
    """Results depend on the arguments alone, so JAX and XLA may elide calls."""

    name = "pure"
    in_loops = False
    at_device = True
    finite = True


PURE = Pure()


def bind_pure(
    host: HostFunction,
    result: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    *,
    any_structure: bool = False,
    mask: Any = None,
) -> Any:
    """Bind one call of a pure callback; return a pytree of the declared structure.

    With a mask, a boolean scalar, the results are zero where it is false.
    """
    __tracebackhide__ = True
    out = declared(result, host.current, args, kwargs)
    return bind(PURE, host, args, kwargs, options, out, mask=mask, any_structure=any_structure)


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    arrays: str = "numpy",
    executor: Any = None,
    chunksize: int | None = None,
    timeout: float | None = None,
    rematerialize: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a pure Python function from JAX; the signature is that of `jax.pure_callback`.

    Args:
        callback: the host function. It gets read-only NumPy arrays of exactly the shapes and
            dtypes of the arguments and returns arrays (or scalars) as declared.
        result_shape_dtypes: a pytree whose leaves have ``shape`` and ``dtype``, or an expression
            over the parameter names of `callback` (``"x"``).
        *args: pytrees of arrays; other hashable values (strings, enums) are passed unchanged.
        sharding: a SingleDeviceSharding with the device to call from.
        vmap_method: one of those in the table in `jupyter_jaxcb.pure`, which lists the shapes that
            the host function gets; ``"sequential"`` is correct for every function. With None, vmap
            raises an error.
        arrays: the arrays that the host function gets: ``"numpy"``, or ``"jax"`` for JAX arrays on
            the local CPU, as with JAX's own callbacks. ``"jax"`` is slower, and can deadlock where
            JAX's callbacks can.
        executor: where the calls run, see `jupyter_jaxcb.pure`.
        chunksize: batch elements sent to a worker at a time.
        timeout: seconds that a chunk of them may take in the executor.
        rematerialize: whether `jax.checkpoint` calls again where it recomputes, as JAX does.
        **kwargs: keyword arguments, as `args`.

    Returns:
        Arrays in the structure of `result_shape_dtypes`. If the host function returns as many
        arrays in another structure, they are used in order, with a `ResultStructureWarning`.

    Raises:
        ValueError: if `vmap_method` is unknown, or for a 64-bit result while x64 is off; under
            grad, as the callback has no derivative rule (use `jupyter_jaxcb.pure` and `defjvp`).
        TypeError: if an argument is neither an array nor hashable.
        NotImplementedError: under vmap without a `vmap_method`.
        jax.errors.JaxRuntimeError: if the host function raised, or its result does not match the
            declaration. `jupyter_jaxcb.host_error` returns the original exception.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> x = np.float32([0.0, 3.0])
    >>> jax.jit(lambda x: jaxcb.pure_callback(np.square, x, x))(x)
    Array([0., 9.], dtype=float32)
    """
    __tracebackhide__ = True
    options = checked(
        "pure", drop_in=True, vmap_method=vmap_method, sharding=sharding,
        arrays=arrays, executor=executor, chunksize=chunksize, timeout=timeout,
        rematerialize=rematerialize,
    )  # fmt: skip
    options.look_at(callback)
    return bind_pure(
        HostFunction(callback), result_shape_dtypes, args, kwargs, options, any_structure=True
    )
