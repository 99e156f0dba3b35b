"""The io flavor: called as often as the program says, with or without results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import jax_compat
from ..call import HostCallback, HostFunction, debug_equivalent
from ..options import Options, check_result, checked
from ..results import result_avals as declared
from ._bind import bind
from ._flavor import KEPT, Ordered
from ._vmap import refuse_names


class Io(Ordered):
    """Calls have side effects: JAX and XLA keep every one."""

    name = "io"
    at_device = True
    is_exact = True

    def effects(self, options: Options) -> set[jax_compat.Effect]:
        """Return one that lasts, and JAX's, for its checks and order.

        JAX's effect does not survive partial evaluation, and is refused in checkpoints.
        """
        return {KEPT, *super().effects(options)} if options.rematerialize else {KEPT}

    def applies_mask(self, callback: HostCallback) -> bool:
        """Return True: JAX refuses io callbacks in vmapped branches and loops."""
        return True

    def no_jvp(self, callback: HostCallback) -> Exception:
        """Return the error of a derivative, and what to do."""
        if callback.out_tree is not None and callback.out_tree.num_leaves:
            advice = "Pass its arguments"
        else:
            by = debug_equivalent(callback.host)
            advice = (
                f"It returns nothing: use a debug callback ({by}), which does not affect "
                "gradients. Or pass its arguments"
            )
        return ValueError(
            f"cannot differentiate {callback}: IO callbacks do not support JVP. {advice} "
            "through jax.lax.stop_gradient, or wrap the call in jax.custom_jvp."
        )

    def no_transpose(self, callback: HostCallback) -> Exception:
        """Return the error of a transpose."""
        return ValueError(
            f"cannot transpose {callback}: IO callbacks do not support transpose. Pass its "
            "arguments through jax.lax.stop_gradient, or wrap the call in jax.custom_vjp."
        )

    def batch(self, args: Any, dims: Any, *, callback: HostCallback, **params: Any) -> Any:
        """Batch an unordered call."""
        __tracebackhide__ = True
        if callback.options.ordered:
            raise ValueError(
                f"Cannot `vmap` ordered IO callback. {callback} has ordered=True, but the elements "
                "of a batch have no order. Drop ordered=True, or loop with jax.lax.map."
            )
        return super().batch(args, dims, callback=callback, **params)


IO = Io()


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
    return bind(IO, host, args, kwargs, options, out, mask=mask, any_structure=any_structure)


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
    rematerialize: bool = True,
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
        rematerialize: False lets it be in a differentiated `jax.checkpoint`, see
            `jupyter_jaxcb.io`.
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
        "io", drop_in=True, vmap_method=vmap_method, ordered=ordered, sharding=sharding,
        arrays=arrays, executor=executor, chunksize=chunksize, timeout=timeout, queued=queued,
        on_full=on_full, rematerialize=rematerialize,
    )  # fmt: skip
    options.look_at(callback)
    return bind_io(
        HostFunction(callback), result_shape_dtypes, args, kwargs, options, any_structure=True
    )
