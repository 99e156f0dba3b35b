"""Decorators: a Python function becomes a callback that JAX code calls like any function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from ..core import HostFunction, name_of, register
from ..executors import settings_of, spread_of
from ..flavors import bind_debug, bind_io, bind_pure, check_vmap_method
from ..lint import warn_of_impurity
from ..results import MISSING, Inferred, declared_result, is_infer, result_interface
from ._callback import Callback, PureCallback, check_function


@overload
def pure(function: Callable[..., Any], *, result: Any = ..., vmap_method: str | None = ...,
         sharding: Any = ..., arrays: str = ..., cast: bool = ...,
         derivative: str | None = ..., executor: Any = ..., chunksize: int | None = ...,
         timeout: float | None = ..., retries: int = ...) -> PureCallback: ...  # fmt: skip
@overload
def pure(*, result: Any = ..., vmap_method: str | None = ...,
         sharding: Any = ..., arrays: str = ..., cast: bool = ...,
         derivative: str | None = ..., executor: Any = ..., chunksize: int | None = ...,
         timeout: float | None = ..., retries: int = ...,
         ) -> Callable[[Callable[..., Any]], PureCallback]: ...  # fmt: skip
def pure(
    function: Callable[..., Any] | None = None,
    *,
    result: Any = MISSING,
    vmap_method: str | None = "sequential",
    sharding: Any = None,
    arrays: str = "numpy",
    cast: bool = False,
    derivative: str | None = None,
    executor: Any = None,
    chunksize: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
) -> Any:
    """Registers a pure host function; works as a decorator.

    The callback calls `function`, until the notebook cell or module that registers it is run again
    and registers one function of that name and with these options: then compiled programs call
    that one.

    Args:
        function: its result depends on its arguments alone. It gets read-only numpy arrays.
        result: what it returns: a pytree of things with shape and dtype, an expression over its
            parameter names (``"z"``, ``"(z, z.shape[:1])"``) or a function of its parameters;
            ``"infer"`` runs it once on zeros. If it is left out, a return annotation of
            jaxtyping's says it: ``-> Float[Array, "n+1"]``; NumPy's and SciPy's ufuncs know it.
        vmap_method: how vmap calls it; the default ``"sequential"`` is always right: one host
            call per lane. ``"expand_dims"`` and ``"broadcast_all"`` make one call of the whole
            batch, for functions that broadcast as numpy's do.
        sharding: a SingleDeviceSharding naming the device to call from.
        arrays: what it gets: ``"numpy"``, or ``"jax"`` for JAX arrays on the local CPU.
        cast: convert what it answers within its kind even if that loses: integers wrap around,
            floating numbers become infinite.
        derivative: ``"finite"`` differentiates it by central differences, for quick results: one
            more host call, in which `function` runs twice for each element of the arguments that
            are differentiated, these in float64. Accurate to about 1e-4 in float32, and once only:
            second derivatives need a rule.
        executor: who makes the calls, side by side where vmap makes one a lane: ``"threads"``,
            ``"processes"``, ``"dask"`` (``"dask:tcp://host:8786"``), ``"ipyparallel"`` or
            ``"mpi"``, with a number of workers as in ``"threads:8"``; any
            `concurrent.futures.Executor`, `distributed.Client` or view of ipyparallel's.
        chunksize: lanes that are sent together; by default as many as are worth it.
        timeout: seconds that one call may take in the executor.
        retries: how often a call that failed there, or whose worker ended, is made again.

    Returns:
        A `PureCallback`: call it in JAX code; `defjvp` and `defvjp` give it derivatives.

    Raises:
        TypeError: `function` is not callable, or cannot be sent to `executor`.
        ValueError: no `result`, an unknown `vmap_method` or executor, or one that is shut down.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.pure(result="x")
    ... def double(x):
    ...     return 2 * x
    >>> jax.vmap(double)(np.arange(3))
    Array([0, 2, 4], dtype=int32)
    >>> side_by_side = jaxcb.pure(double.__wrapped__, result="x", executor="threads")
    >>> jax.vmap(side_by_side)(np.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    if function is None:
        return functools.partial(
            pure, result=result, vmap_method=vmap_method, sharding=sharding, arrays=arrays,
            cast=cast, derivative=derivative, executor=executor, chunksize=chunksize,
            timeout=timeout, retries=retries,
        )  # fmt: skip
    check_function(function, "pure", arrays)
    spread = spread_of(executor, chunksize, timeout, retries, arrays=arrays)
    _check_derivative(derivative)
    check_vmap_method(vmap_method)
    declared = declared_result(function, "pure", result)
    warn_of_impurity(function, name_of(function))
    host = register(
        function, ("pure", result_interface(declared), vmap_method, sharding, arrays, cast, spread)
    )
    if is_infer(declared):
        declared = Inferred(lambda: host.current)

    bind = functools.partial(
        bind_pure, host, declared, vmap_method=vmap_method, sharding=sharding, arrays=arrays,
        cast=cast, spread=spread,
    )  # fmt: skip
    settings = {
        "vmap_method": vmap_method, "arrays": arrays, "sharding": sharding, "cast": cast,
        "derivative": derivative, **settings_of(spread),
    }  # fmt: skip
    callback = PureCallback(function, host, bind, settings, result=declared)
    if derivative == "finite":
        callback.differ(functools.partial(_bind_lanes, sharding=sharding, arrays=arrays))
    return callback


def _check_derivative(derivative: str | None) -> None:
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    if derivative not in (None, "finite"):
        raise ValueError(
            f"unknown derivative {derivative!r}: it is None or 'finite'. Rules are given by defjvp "
            "and defvjp."
        )


def _bind_lanes(host: HostFunction, result: Any, args: tuple[Any, ...], **options: Any) -> Any:
    return bind_pure(host, result, args, {}, vmap_method="sequential", **options)


@overload
def io(function: Callable[..., Any], *, result: Any = ..., ordered: bool = ...,
       sharding: Any = ..., arrays: str = ..., cast: bool = ..., executor: Any = ...,
       chunksize: int | None = ..., timeout: float | None = ...,
       retries: int = ...) -> Callback: ...  # fmt: skip
@overload
def io(*, result: Any = ..., ordered: bool = ...,
       sharding: Any = ..., arrays: str = ..., cast: bool = ..., executor: Any = ...,
       chunksize: int | None = ..., timeout: float | None = ..., retries: int = ...,
       ) -> Callable[[Callable[..., Any]], Callback]: ...  # fmt: skip
def io(
    function: Callable[..., Any] | None = None,
    *,
    result: Any = MISSING,
    ordered: bool = False,
    sharding: Any = None,
    arrays: str = "numpy",
    cast: bool = False,
    executor: Any = None,
    chunksize: int | None = None,
    timeout: float | None = None,
    retries: int = 0,
) -> Any:
    """Registers a host function with effects; works as a decorator.

    It runs exactly as often as the program says, its result used or not. Running its cell again
    swaps it as for `pure`.

    Args:
        function: the host function; gets read-only numpy arrays.
        result: as for `pure`, but not ``"infer"``; None: it returns nothing.
        ordered: keep program order among all ordered io callbacks; vmap then refuses.
        sharding: a SingleDeviceSharding naming the device to call from.
        arrays: what it gets: ``"numpy"``, or ``"jax"`` for JAX arrays on the local CPU.
        cast: as for `pure`.
        executor: as for `pure`, not with `ordered`; and so `chunksize`, `timeout` and `retries`.
        chunksize: lanes that are sent together.
        timeout: seconds that one call may take.
        retries: how often a call that failed is made again: its effects too.

    Returns:
        A `Callback`: call it in JAX code.

    Raises:
        TypeError: `function` is not callable.
        ValueError: no `result`.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> generator = np.random.default_rng(0)
    >>> @jaxcb.io(result="x")
    ... def noise(x):
    ...     return generator.standard_normal(x.shape, x.dtype)
    >>> jax.jit(noise)(np.zeros(2, np.float32)).shape
    (2,)
    """
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    if function is None:
        return functools.partial(
            io, result=result, ordered=ordered, sharding=sharding, arrays=arrays, cast=cast,
            executor=executor, chunksize=chunksize, timeout=timeout, retries=retries,
        )  # fmt: skip
    check_function(function, "io", arrays)
    spread = spread_of(executor, chunksize, timeout, retries, arrays=arrays, ordered=ordered)
    declared = declared_result(function, "io", result)
    interface = ("io", result_interface(declared), ordered, sharding, arrays, cast, spread)
    host = register(function, interface)

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
        return bind_io(
            host,
            declared,
            args,
            kwargs,
            ordered=ordered,
            sharding=sharding,
            arrays=arrays,
            cast=cast,
            spread=spread,
        )

    settings = {
        "ordered": ordered,
        "arrays": arrays,
        "sharding": sharding,
        "cast": cast,
        **settings_of(spread),
    }
    return Callback("io", function, host, call, settings, declared=declared)


@overload
def debug(function: Callable[..., Any], *, ordered: bool = ...,
          partitioned: bool = ..., arrays: str = ...) -> Callback: ...  # fmt: skip
@overload
def debug(*, ordered: bool = ...,
          partitioned: bool = ..., arrays: str = ...,
          ) -> Callable[[Callable[..., Any]], Callback]: ...  # fmt: skip
def debug(
    function: Callable[..., Any] | None = None,
    *,
    ordered: bool = False,
    partitioned: bool = False,
    arrays: str = "numpy",
) -> Any:
    """Registers a host function that looks on and returns nothing; works as a decorator.

    Running its cell again swaps it as for `pure`.

    Args:
        function: what it returns is ignored; arguments that are no arrays reach it unchanged.
        ordered: keep program order among ordered debug callbacks.
        partitioned: under jit over several devices, call once per device with its shard.
        arrays: what it gets: ``"numpy"``, or ``"jax"`` for JAX arrays on the local CPU.

    Returns:
        A `Callback`: call it in JAX code; gradients pass by.

    Raises:
        TypeError: `function` is not callable.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.debug
    ... def show(x):
    ...     print("saw", x)
    >>> jax.jit(show)(np.float32(3)), jax.effects_barrier()
    saw 3.0
    (None, None)
    """
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    if function is None:
        return functools.partial(debug, ordered=ordered, partitioned=partitioned, arrays=arrays)
    check_function(function, "debug", arrays)
    host = register(function, ("debug", ordered, partitioned, arrays))

    def call(*args: Any, **kwargs: Any) -> None:
        __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
        bind_debug(host, args, kwargs, ordered=ordered, partitioned=partitioned, arrays=arrays)

    settings = {"ordered": ordered, "partitioned": partitioned, "arrays": arrays}
    return Callback("debug", function, host, call, settings)
