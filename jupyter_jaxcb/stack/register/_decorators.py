"""Decorators: a Python function becomes a callback that JAX code calls like any function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..core import name_of, register
from ..executors import spread_of
from ..flavors import DebugOptions, IoOptions, PureOptions, bind_debug, bind_io, bind_pure
from ..lint import warn_of_impurity
from ..results import MISSING, Inferred, declared_result, is_infer, result_interface
from ._callback import Callback, PureCallback, check_function
from ._two_forms import in_two_forms, with_function


@in_two_forms
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
) -> PureCallback:
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
            call per element. ``"expand_dims"`` and ``"broadcast_all"`` make one call of the whole
            batch, for functions that broadcast as numpy's do.
        sharding: a SingleDeviceSharding naming the device to call from.
        arrays: what it gets: ``"numpy"``, or ``"jax"`` for JAX arrays on the local CPU.
        cast: convert what it answers within its kind even if that loses: integers wrap around,
            floating numbers become infinite.
        derivative: ``"finite"`` differentiates it by central differences, for quick results: one
            more host call, in which `function` runs twice for each element of the arguments that
            are differentiated, these in float64. Accurate to about 1e-4 in float32, and once only:
            second derivatives need a rule.
        executor: who makes the calls, side by side where vmap makes one a element: ``"threads"``,
            ``"processes"``, ``"dask"`` (``"dask:tcp://host:8786"``), ``"ipyparallel"`` or
            ``"mpi"``, with a number of workers as in ``"threads:8"``; any
            `concurrent.futures.Executor`, `distributed.Client` or view of ipyparallel's.
        chunksize: batch elements that are sent together; by default as many as are worth it.
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
    __tracebackhide__ = True
    options = PureOptions(
        vmap_method=vmap_method, sharding=sharding, arrays=arrays, cast=cast,
        derivative=derivative, spread=spread_of(executor, chunksize, timeout, retries),
    ).validated()  # fmt: skip
    return with_function(function, _register_pure, result, options)


def _register_pure(function: Any, result: Any, options: PureOptions) -> PureCallback:
    __tracebackhide__ = True
    check_function(function, "pure")
    declared = declared_result(function, "pure", result)
    warn_of_impurity(function, name_of(function))
    host = register(function, ("pure", result_interface(declared), options))
    if is_infer(declared):
        declared = Inferred(lambda: host.current)
    bind = functools.partial(bind_pure, host, declared, options=options)
    callback = PureCallback("pure", function, host, bind, options, declared=declared)
    if options.derivative == "finite":
        of_elements = PureOptions(sharding=options.sharding, arrays=options.arrays)
        callback.differ(functools.partial(bind_pure, kwargs={}, options=of_elements))
    return callback


@in_two_forms
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
) -> Callback:
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
        chunksize: batch elements that are sent together.
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
    __tracebackhide__ = True
    options = IoOptions(
        ordered=ordered, sharding=sharding, arrays=arrays, cast=cast,
        spread=spread_of(executor, chunksize, timeout, retries),
    ).validated()  # fmt: skip
    return with_function(function, _register_io, result, options)


def _register_io(function: Any, result: Any, options: IoOptions) -> Callback:
    __tracebackhide__ = True
    check_function(function, "io")
    declared = declared_result(function, "io", result)
    host = register(function, ("io", result_interface(declared), options))
    bind = functools.partial(bind_io, host, declared, options=options)
    return Callback("io", function, host, bind, options, declared=declared)


@in_two_forms
def debug(
    function: Callable[..., Any] | None = None,
    *,
    ordered: bool = False,
    partitioned: bool = False,
    arrays: str = "numpy",
) -> Callback:
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
    __tracebackhide__ = True
    options = DebugOptions(ordered=ordered, partitioned=partitioned, arrays=arrays).validated()
    return with_function(function, _register_debug, options)


def _register_debug(function: Any, options: DebugOptions) -> Callback:
    __tracebackhide__ = True
    check_function(function, "debug")
    host = register(function, ("debug", options))
    bind = functools.partial(bind_debug, host, options=options)
    return Callback("debug", function, host, bind, options)
