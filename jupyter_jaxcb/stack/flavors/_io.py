"""The io flavor: called as often as the program says, with or without results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from ... import jax_compat
from ..call import HostCallback, HostFunction, debug_equivalent, look_at_drop_in
from ..lowering import lower_host_call
from ..options import Options, check_result, checked
from ..results import result_avals as declared
from ._bind import bind_host_call
from ._eager import eager, effect_of_order, raise_runtime_error
from ._vmap import batch_host_call, refuse_names, results_like

io_callback_p = jax_compat.Primitive("jaxcb_io_callback")
io_callback_p.multiple_results = True
jax_compat.requires_devices_during_lowering(io_callback_p)


class KeptIOEffect(jax_compat.Effect):
    """Keeps an io callback in the forward pass when a loop around it is differentiated.

    A bind has JAX's own io effect as well, for JAX's checks and its order of tokens. JAX's effect
    alone does not survive partial evaluation.
    """

    def __str__(self) -> str:
        return "KeptIO"


_kept = KeptIOEffect()
jax_compat.keep_under_partial_evaluation(KeptIOEffect)


def _abstract_eval(
    *avals: Any, result_avals: tuple[Any, ...], callback: HostCallback, **params: Any
) -> tuple[tuple[Any, ...], set[jax_compat.Effect]]:
    effects = {jax_compat.jax_effect("io", callback.options.ordered), _kept}
    return results_like(callback, avals, result_avals), effects


def _impl(*args: Any, callback: HostCallback, **params: Any) -> list[Any]:
    return eager(
        io_callback_p,
        *args,
        callback=callback,
        effect=effect_of_order(callback),
        fail=raise_runtime_error,
        **params,
    )


def _jvp(
    primals: Any, tangents: Any, *, callback: HostCallback, result_avals: Any, **params: Any
) -> NoReturn:
    __tracebackhide__ = True
    if result_avals:
        advice = "Pass its arguments"
    else:
        by = debug_equivalent(callback.host)
        advice = (
            f"It returns nothing: use a debug callback ({by}), which does not affect gradients. "
            "Or pass its arguments"
        )
    raise ValueError(
        f"cannot differentiate {callback}: IO callbacks do not support JVP. {advice} "
        "through jax.lax.stop_gradient, or wrap the call in jax.custom_jvp."
    )


def _transpose(cotangents: Any, *args: Any, callback: HostCallback, **params: Any) -> NoReturn:
    __tracebackhide__ = True
    raise ValueError(
        f"cannot transpose {callback}: IO callbacks do not support transpose. Pass its arguments "
        "through jax.lax.stop_gradient, or wrap the call in jax.custom_vjp."
    )


def _batch(args: Any, dims: Any, *, callback: HostCallback, **params: Any) -> Any:
    __tracebackhide__ = True
    if callback.options.ordered:
        raise ValueError(
            f"Cannot `vmap` ordered IO callback. {callback} has ordered=True, but the elements of "
            "a batch have no order. Drop ordered=True, or loop with jax.lax.map."
        )
    return batch_host_call(
        io_callback_p, args, dims, method=callback.options.vmap_method, callback=callback, **params
    )


def _lower(ctx: Any, *operands: Any, callback: HostCallback, levels: Any, **params: Any) -> Any:
    return lower_host_call(
        ctx,
        *operands,
        callback=callback,
        levels=levels,
        has_side_effect=True,
        ordered=effect_of_order(callback),
    )


io_callback_p.def_effectful_abstract_eval(_abstract_eval)
io_callback_p.def_impl(_impl)
jax_compat.ad.primitive_jvps[io_callback_p] = _jvp
jax_compat.ad.primitive_transposes[io_callback_p] = _transpose
jax_compat.register_batching(io_callback_p, _batch)
jax_compat.stay_in_loops(io_callback_p)
jax_compat.mlir.register_lowering(io_callback_p, _lower, cacheable=False)  # as in _pure.py


def bind_io(
    host: HostFunction,
    result: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    options: Options,
    *,
    any_structure: bool = False,
    mask: Any = None,
) -> Any:
    """Bind one call of an io callback; return a pytree of the declared structure.

    With a mask, a boolean scalar, the results are zero where it is false.
    """
    __tracebackhide__ = True
    out = declared(result, host.current, args, kwargs)
    if out[0]:
        check_result(host.name, options)
    else:
        refuse_names(options, host.name)
    return bind_host_call(
        io_callback_p, host, out, args, kwargs, options, mask=mask, any_structure=any_structure
    )


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    vmap_method: str | None = "sequential",
    arrays: str = "numpy",
    executor: Any = None,
    chunksize: int | None = None,
    timeout: float | None = None,
    queued: bool = False,
    on_full: str = "wait",
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects from JAX.

    The signature is that of `jax.experimental.io_callback`. JAX and XLA keep every call that the
    program makes, also under grad; `jupyter_jaxcb.io` lists the three exceptions.

    Args:
        callback: the host function. It gets read-only NumPy arrays of the traced shapes and dtypes,
            and returns arrays (or scalars) as declared.
        result_shape_dtypes: a pytree whose leaves have ``shape`` and ``dtype``, or an expression
            over the parameter names of `callback` (``"x"``). None if it returns nothing.
        *args: pytrees of arrays; other hashable values (strings, enums) are passed unchanged.
        sharding: a SingleDeviceSharding with the device to call from.
        ordered: keep program order among all ordered io callbacks. An ordered callback has no
            batching rule.
        vmap_method: how vmap calls it, see `jupyter_jaxcb.io`.
        arrays: the arrays that the host function gets: ``"numpy"``, or ``"jax"`` for JAX arrays on
            the local CPU, as with JAX's own callbacks. ``"jax"`` is slower, and can deadlock where
            JAX's callbacks can.
        executor: where the calls run, see `jupyter_jaxcb.pure`.
        chunksize: batch elements sent to a worker at a time.
        timeout: seconds that a chunk of them may take in the executor.
        queued: do not wait for the calls, see `jupyter_jaxcb.io`.
        on_full: ``"wait"`` or ``"drop"``, see `jupyter_jaxcb.io`.
        **kwargs: keyword arguments, as `args`.

    Returns:
        Arrays in the structure of `result_shape_dtypes`. If the host function returns as many
        arrays in another structure, they are used in order, with a `ResultStructureWarning`.

    Raises:
        ValueError: if `vmap_method` is unknown, or passes whole batches and ``ordered=True``;
            under vmap with ``ordered=True``; under grad, if an argument depends on the
            differentiated value (pass it through `jax.lax.stop_gradient`); or for a 64-bit result
            while x64 is off.
        TypeError: if an argument is neither an array nor hashable.
        jax.errors.JaxRuntimeError: if the host function raised, or its result does not match the
            declaration. `jupyter_jaxcb.host_error` returns the original exception.

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> seen = []
    >>> f = jax.jit(lambda x: jaxcb.io_callback(lambda x: seen.append(float(x)), None, x))
    >>> f(np.float32(2)), jax.effects_barrier(), seen
    (None, None, [2.0])
    """
    __tracebackhide__ = True
    options = checked(
        "io", vmap_method=vmap_method, ordered=ordered, sharding=sharding, arrays=arrays,
        executor=executor, chunksize=chunksize, timeout=timeout, queued=queued,
        on_full=on_full,
    )  # fmt: skip
    look_at_drop_in(callback, options)
    return bind_io(
        HostFunction(callback), result_shape_dtypes, args, kwargs, options, any_structure=True
    )
