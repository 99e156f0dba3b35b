"""The decorators ``pure``, ``io`` and ``debug``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..capabilities.compiled import register_compiled
from ..capabilities.derivatives import Differences, ReturnedGradient
from ..capabilities.linear import linear_in
from ..stack.call import HostFunction, check_named, name_of, register
from ..stack.flavors import bind_debug, bind_io, bind_pure
from ..stack.options import Options, check_result, checked
from ..stack.results import MISSING, Inferred, declared_result, result_interface
from ._callback import Callback, PureCallback, check_function
from ._two_forms import in_two_forms, with_function


@in_two_forms
def pure(
    function: Callable[..., Any] | None = None,
    *,
    result: Any = MISSING,
    vmap_method: str | None = "sequential",
    partitioned: bool | str | Sequence[str] = False,
    sharding: Any = None,
    arrays: str = "numpy",
    cast: bool = False,
    derivative: str | None = None,
    gradient: str | Sequence[str] | None = None,
    linear: str | Sequence[str] | None = None,
    linear_self_adjoint: bool = False,
    executor: Any = None,
    chunksize: int | None = None,
    timeout: float | None = None,
    compile: str | None = None,
    rematerialize: bool = True,
) -> PureCallback:
    """Register a pure host function; works as a decorator.

    The result of a pure function depends on its arguments alone, so JAX and XLA may remove,
    deduplicate or hoist its calls. Programs that are already compiled call the new function when
    the notebook cell or module that registers it runs again, provided that its name and options
    stay the same.

    Under vmap with a batch of size ``B``, an argument of shape ``s`` (per element) reaches
    `function` as follows:

    =========================  ==========  ============  =============  ====================
    `vmap_method`              host calls  batched       unbatched      must return
    =========================  ==========  ============  =============  ====================
    ``"sequential"``           ``B``       ``s``         ``s``          the declared shape
    ``"sequential_unrolled"``  ``B``       ``s``         ``s``          the declared shape
    ``"expand_dims"``          1           ``(B, *s)``   ``(1, *s)``    ``(B, *declared)``
    ``"broadcast_all"``        1           ``(B, *s)``   ``(B, *s)``    ``(B, *declared)``
    ``"legacy_vectorized"``    1           ``(B, *s)``   ``s``          ``(B, *declared)``
    =========================  ==========  ============  =============  ====================

    With None, vmap raises an error. Each nested vmap adds one axis, the outermost in front. A call
    without batched arguments is not changed. The two sequential methods are the same here: XLA
    crosses to Python once, and the host loops over the elements.

    Args:
        function: the host function. It gets read-only NumPy arrays of the traced shapes and dtypes.
        result: the shapes and dtypes that it returns: a pytree whose leaves have ``shape`` and
            ``dtype``, or are scalar types (``float``, ``np.int32``); an expression over its
            parameter names (``"z"``, ``"(z[0], z.shape[:1])"``); or a function of its parameters,
            which get a shape and a dtype but no values. ``"infer"`` runs `function` once, on zeros.
            If omitted, a jaxtyping return annotation is used (``-> Float[Array, "n+1"]``); ufuncs
            of NumPy and SciPy need no declaration.
        vmap_method: how vmap calls it, see the table. The default is correct for every function;
            ``"expand_dims"`` and ``"broadcast_all"`` are for functions that broadcast like NumPy's.
        partitioned: under jit over several devices, call once on each device with its rows: True
            for those of all array arguments, or the names of the parameters that are divided, if
            the others are passed whole. Rows are along the first axis. Each result has the rows of
            the arguments, and is spread over the devices as they are. The function must
            treat each row alone.
        sharding: a SingleDeviceSharding with the device to call from.
        arrays: the arrays that it gets: ``"numpy"``, or ``"jax"`` for JAX arrays on the local CPU.
        cast: allow conversions of the result that lose information within its kind: integers wrap
            around, floating-point numbers become infinite.
        derivative: ``"finite"`` differentiates it by central differences. The Jacobian takes one
            more host call, in which `function` runs twice for each element of the differentiated
            arguments; these are passed in float64. The step is the cube root of the machine epsilon
            of the argument's dtype, times the size of the element (Press et al., Numerical Recipes,
            section 5.7). So for a function that is smooth on the scale of its arguments, the
            relative error is of order ``eps ** (2 / 3)``: 2e-5 in float32, 4e-11 in float64. Second
            derivatives need a rule. With `gradient`, only these are differences: those of the
            gradient, with the same error. A Hessian or a Hessian-vector product then takes one host
            call, with two runs for each element. With `executor`, the two runs for each element are
            a call of their own there, with twice the `timeout`.
        gradient: the parameters by which it returns its gradient, beside its value:
            ``value, gradient = function(...)``, where `result` declares the value alone. For
            ``"theta"`` the gradient is a pytree like `theta`; of several results, a pytree of these
            with arrays of the shape ``result.shape + theta.shape``, as from `jax.jacobian`; for
            ``("theta", "phi")`` a tuple of both. A derivative takes one host call, as the value
            alone, which drops the gradient. Second derivatives need ``derivative="finite"``, or a
            rule.
        linear: the parameters in which it is linear, jointly: ``"b"``, or ``("b", "c")``. JAX then
            differentiates by these, and transposes, with the function itself and its transpose:
            see `PureCallback.deftranspose`, and `PureCallback.defresidual` for the others.
        linear_self_adjoint: with `linear`, it is its own adjoint, as a symmetric or Hermitian
            operator, and needs no transpose.
        executor: where the calls run, in parallel where vmap makes one call for each element:
            ``"threads"``, ``"processes"``, ``"dask"`` (``"dask:tcp://host:8786"``),
            or ``"ipyparallel"``, the first two with a number of workers as in ``"threads:8"``; or
            any `concurrent.futures.Executor` (such as an ``MPIPoolExecutor``), a
            `distributed.Client` or an ipyparallel view.
        chunksize: batch elements sent to a worker at a time. None: a quarter of what each worker
            gets, or one with `timeout`.
        timeout: seconds that a chunk may take in the executor; then the program fails.
        compile: ``"numba"`` compiles it: XLA then calls machine code, without Python and its lock.
            It gets numbers instead of arrays of rank 0. numba supports `part of Python and NumPy
            <https://numba.readthedocs.io/en/stable/reference/pysupported.html>`_; what it does not
            support is an error. Only on CPUs; needs ``pip install 'jupyter_jaxcb[numba]'``.
        rematerialize: whether the backward pass of a `jax.checkpoint` calls it again, as its policy
            says. False: its results are saved, whatever the policy, and so are those of the calls
            that differentiate it.

    Returns:
        A `PureCallback`. Call it in JAX code; `defjvp` and `defvjp` define its derivative.

    Raises:
        TypeError: if `function` is not callable, or `executor` is not an executor. Later, if the
            function cannot be sent to `executor`.
        ValueError: if `result` is missing, an option has an invalid value, the executor is shut
            down, or options cannot be combined; the message says what to write instead.
        ImportError: if `compile` is given and numba is not installed.

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
    options = checked(
        "pure", vmap_method=vmap_method, partitioned=partitioned, sharding=sharding,
        arrays=arrays, cast=cast, derivative=derivative, gradient=gradient, linear=linear,
        linear_self_adjoint=linear_self_adjoint, executor=executor, chunksize=chunksize,
        timeout=timeout, compile=compile, rematerialize=rematerialize,
    )  # fmt: skip
    return with_function(function, _register_pure, result, options)


def _register_pure(function: Any, result: Any, options: Options) -> PureCallback:
    __tracebackhide__ = True
    check_function(function, "pure")
    declared = declared_result(function, "pure", result)
    options.look_at(function, registered=True)
    host = register(function, (result_interface(declared), options))
    _check_divided(host, options)
    bind = functools.partial(bind_pure, host, declared, options=options)
    if options.compile:
        register_compiled(host)
    if options.gradient:
        return _with_gradient(function, host, declared, options)
    if options.linear:
        linear_in(host, options)
    callback = PureCallback(function, host, bind, options, declared=declared)
    if options.derivative == "finite":
        callback.differ("finite", _differences(host, options))
    return callback


def _differences(host: HostFunction, options: Options, **more: str) -> Differences:
    """Return what differentiates a host function, with the options of the calls that do."""
    timeout = options.timeout and 2 * options.timeout  # each calls the function twice
    given = Options(
        flavor="pure", sharding=options.sharding, arrays=options.arrays, executor=options.executor,
        chunksize=options.chunksize, timeout=timeout, derivative="finite",
        rematerialize=options.rematerialize,
    )  # fmt: skip
    return Differences(host, given, options.executor is not None, **more)


def _check_divided(host: HostFunction, options: Options) -> None:
    """Raise ValueError if a host function lacks the arguments that are to be divided."""
    __tracebackhide__ = True
    if isinstance(options.partitioned, tuple):
        check_named(host, options.spelled("partitioned"), options.partitioned)


def _with_gradient(
    function: Any, host: HostFunction, declared: Any, options: Options
) -> PureCallback:
    """Register a function that returns its value and its gradient."""
    __tracebackhide__ = True
    if isinstance(declared, Inferred):
        raise ValueError(
            f'result="infer" of {host.name} cannot be combined with gradient={options.gradient!r}: '
            "it would infer both. Declare the shape and dtype of the value."
        )
    differences = None
    if options.derivative == "finite":
        twice = "three times: second derivatives are differences of the gradient that it returns"
        differences = _differences(host, options, twice=twice)
    returned = ReturnedGradient(host, declared, options.gradient or "", differences)

    def value(args: Any, kwargs: Any, **mask: Any) -> Any:
        __tracebackhide__ = True
        return bind_pure(host, returned.declared, args, kwargs, options, **mask)[0]

    callback = PureCallback(function, host, value, options, declared=declared)
    callback.returned = returned.declared
    callback.differ("gradient", returned)
    return callback


@in_two_forms
def io(
    function: Callable[..., Any] | None = None,
    *,
    result: Any = MISSING,
    vmap_method: str | None = "sequential",
    ordered: bool = False,
    partitioned: bool | str | Sequence[str] = False,
    sharding: Any = None,
    arrays: str = "numpy",
    cast: bool = False,
    executor: Any = None,
    chunksize: int | None = None,
    timeout: float | None = None,
    compile: str | None = None,
    queued: bool = False,
    on_full: str = "wait",
    rematerialize: bool = True,
) -> Callback:
    """Register a host function with side effects; works as a decorator.

    JAX and XLA keep every call that the program makes, whether its result is used or not: in a loop
    one call in each iteration, even if the arguments do not change, with or without grad; under
    vmap one call for each batch element or for the whole batch, as `vmap_method` says, or a single
    call if no argument is batched. There are three exceptions:

    * A call without array arguments in a scan (or a ``fori_loop`` of static length) under grad,
      vjp or linearize: JAX hoists it, so it runs once, before the loop. Pass it the loop index to
      keep one call in each iteration.
    * An unordered call in the condition of a loop whose number of iterations XLA knows: XLA does
      not evaluate the condition. Make the call in the body, or pass ``ordered=True``.
    * A call in a `jax.checkpoint` whose results are unused, if its arguments depend on no array
      from outside: JAX removes both. Make the call outside of it.

    As with `pure`, rerunning the cell replaces the function.

    Args:
        function: the host function. It gets read-only NumPy arrays of the traced shapes and dtypes.
        result: the shapes and dtypes that it returns, as for `pure` except ``"infer"``; None if it
            returns nothing.
        vmap_method: how vmap calls it, see the table at `pure`. By default each batch element is a
            call; with ``"expand_dims"`` and ``"broadcast_all"`` one call gets the whole batch.
        ordered: keep program order among all ordered io callbacks. An ordered callback has no
            batching rule, so it goes with the default `vmap_method` only.
        partitioned: under jit over several devices, call once on each device with its rows: True
            for those of all array arguments, or the names of the parameters that are divided, if
            the others are passed whole. Rows are along the first axis. Each result has the rows of
            the arguments, and is spread over the devices as they are. Without results, each device
            calls with its part of each argument, whatever the axis, as for `debug`.
        sharding: a SingleDeviceSharding with the device to call from.
        arrays: the arrays that it gets: ``"numpy"``, or ``"jax"`` for JAX arrays on the local CPU.
        cast: as for `pure`.
        executor: where the calls run, as for `pure`; not with `ordered`.
        chunksize: batch elements sent to a worker at a time.
        timeout: seconds that a chunk of them may take in the executor.
        compile: as for `pure`. In a program over several devices, call it in ``jax.shard_map``.
        queued: do not wait for the calls, as for `debug`; needs ``result=None``.
        on_full: ``"wait"`` or ``"drop"``, as for `debug`.
        rematerialize: False lets it be in a `jax.checkpoint` that is differentiated: its results
            are saved, so that the backward pass does not call it again. Not with `ordered`.

    Returns:
        A `Callback`. Call it in JAX code.

    Raises:
        TypeError: if `function` is not callable, or `executor` is not an executor. Later, if the
            function cannot be sent to `executor`.
        ValueError: if `result` is missing, an option has an invalid value, the executor is shut
            down, or options cannot be combined: `queued` needs ``result=None``, `on_full` needs
            `queued`, and `ordered` excludes `executor`; the message says what to write instead.
        NotImplementedError: later, in a `jax.checkpoint` that is differentiated, without
            ``rematerialize=False``.
        ImportError: if `compile` is given and numba is not installed.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> generator = np.random.default_rng(0)
    >>> @jaxcb.io(result="x")
    ... def noise(x):
    ...     return generator.standard_normal(x.shape, x.dtype)
    >>> jax.jit(noise)(np.zeros(2, np.float32)).shape
    (2,)
    """
    __tracebackhide__ = True
    options = checked(
        "io", vmap_method=vmap_method, ordered=ordered, partitioned=partitioned, sharding=sharding,
        arrays=arrays, cast=cast,
        executor=executor, chunksize=chunksize, timeout=timeout, compile=compile,
        queued=queued, on_full=on_full, rematerialize=rematerialize,
    )  # fmt: skip
    return with_function(function, _register_io, result, options)


def _register_io(function: Any, result: Any, options: Options) -> Callback:
    __tracebackhide__ = True
    check_function(function, "io")
    declared = declared_result(function, "io", result)
    if declared is not None:
        check_result(name_of(function), options)
    options.look_at(function, registered=True)
    host = register(function, (result_interface(declared), options))
    _check_divided(host, options)
    if options.compile:
        register_compiled(host)
    bind = functools.partial(bind_io, host, declared, options=options)
    return Callback(function, host, bind, options, declared=declared)


@in_two_forms
def debug(
    function: Callable[..., Any] | None = None,
    *,
    vmap_method: str | None = "sequential",
    ordered: bool = False,
    partitioned: bool = False,
    arrays: str = "numpy",
    queued: bool = False,
    on_full: str = "wait",
    rematerialize: bool = True,
) -> Callback:
    """Register a host function that observes values and returns nothing; works as a decorator.

    It does not affect gradients: under grad it gets the primal values. JAX and XLA keep every call
    that the program makes, with the same three exceptions as for `io`: without array arguments,
    JAX hoists the call out of a differentiated scan; XLA drops unordered calls in the condition of
    a loop whose number of iterations it knows; and JAX removes a `jax.checkpoint` whose results are
    unused if the call in it needs no array from outside. Where `jax.checkpoint` recomputes values,
    the call is made again, unless `rematerialize` is False.

    As with `pure`, rerunning the cell replaces the function.

    Args:
        function: the host function. Arrays arrive as read-only NumPy arrays of the traced shapes
            and dtypes; other arguments (strings, objects) are passed through unchanged. Its return
            value is ignored.
        vmap_method: how vmap calls it, see the table at `pure`. By default each batch element is a
            call; with ``"expand_dims"`` and ``"broadcast_all"`` one call gets the whole batch, so a
            function can log the mean of a batch.
        ordered: keep program order among all ordered debug callbacks, one call for each batch
            element. JAX raises an error for a program over several devices; ordered io callbacks
            and taps work there.
        partitioned: under jit over several devices, call once on each device with its shard.
        arrays: the arrays that it gets: ``"numpy"``, or ``"jax"`` for JAX arrays on the local CPU.
        queued: do not wait for the calls. The program goes on; a background thread makes the calls
            of all queued callbacks, in the order in which programs reached them.
            `jax.effects_barrier`, the end of `record` and of a cell, and the end of Python wait
            until they are made; waiting for the program's result does not. The barrier raises the
            error of a failed call, once; the program does not fail.
        on_full: what to do with a call that the queue has no room for: ``"wait"`` makes the program
            wait, ``"drop"`` drops the call, and recordings count it. `set_queue_limit` sets how
            much the queue holds.
        rematerialize: whether it is called again where a `jax.checkpoint` recomputes values. False:
            a metric in a checkpoint is logged once.

    Returns:
        A `Callback`. Call it in JAX code; it returns None.

    Raises:
        TypeError: if `function` is not callable.
        ValueError: if `vmap_method`, `arrays` or `on_full` is unknown, or options cannot be
            combined: `on_full` needs `queued`; the message says what to write instead.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> @jaxcb.debug
    ... def show(x):
    ...     print("saw", x)
    >>> jax.jit(show)(np.float32(3)), jax.effects_barrier()
    saw 3.0
    (None, None)
    >>> show_batch = jaxcb.debug(show.__wrapped__, vmap_method="expand_dims")
    >>> jax.vmap(show_batch)(np.arange(3)), jax.effects_barrier()
    saw [0 1 2]
    (None, None)
    """
    __tracebackhide__ = True
    options = checked(
        "debug", vmap_method=vmap_method, ordered=ordered, partitioned=partitioned, arrays=arrays,
        queued=queued, on_full=on_full, rematerialize=rematerialize,
    )  # fmt: skip
    return with_function(function, _register_debug, options)


def _register_debug(function: Any, options: Options) -> Callback:
    __tracebackhide__ = True
    check_function(function, "debug")
    host = register(function, options)
    bind = functools.partial(bind_debug, host, options=options)
    return Callback(function, host, bind, options)
