"""host_callback.call: a host function with a result, in the order of the taps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from .... import jax_compat
from ...call import HostCallback, HostFunction
from ...lowering import lower_host_call
from ...options import Options
from .. import bind_host_call, eager
from ._barrier import counted
from ._effect import (
    DEVICE,
    TAP,
    building,
    placed,
    raise_as_flagged,
    recomputing,
    wait_for_earlier_taps,
)

tap_call_p = jax_compat.Primitive("jaxcb_tap_call_callback")
tap_call_p.multiple_results = True


def _abstract_eval(
    *avals: Any, result_avals: tuple[Any, ...], **params: Any
) -> tuple[tuple[Any, ...], set[jax_compat.Effect]]:
    return result_avals, {TAP}


def _impl(*args: Any, device_index: int, **params: Any) -> list[Any]:
    __tracebackhide__ = True
    wait_for_earlier_taps()
    return eager(
        tap_call_p,
        *args,
        fail=raise_as_flagged,
        build=building(counted, device_index),
        device_index=device_index,
        **params,
    )


def _jvp(primals: Any, tangents: Any, *, callback: HostCallback, **params: Any) -> NoReturn:
    __tracebackhide__ = True
    raise NotImplementedError(
        f"cannot differentiate {callback}: JVP rule is implemented only for id_tap, not for call. "
        "Wrap the call in jax.custom_vjp or jax.custom_jvp, or pass its argument through "
        "jax.lax.stop_gradient."
    )


def _transpose(cotangents: Any, *args: Any, callback: HostCallback, **params: Any) -> NoReturn:
    __tracebackhide__ = True
    raise NotImplementedError(
        f"cannot transpose {callback}: transpose rule is implemented only for id_tap, not for "
        "call. Wrap the call in jax.custom_vjp."
    )


def _batch(args: Any, dims: Any, *, callback: HostCallback, **params: Any) -> NoReturn:
    __tracebackhide__ = True
    raise NotImplementedError(
        f"cannot vmap {callback}: batching rules are implemented only for id_tap, not for call. "
        "Loop with jax.lax.map, or use jupyter_jaxcb.io or pure, which have a rule for vmap."
    )


def _lower(
    ctx: Any, *operands: Any, callback: HostCallback, levels: Any, device_index: int, **params: Any
) -> Sequence[Any]:
    return lower_host_call(
        ctx,
        *operands,
        callback=callback,
        levels=levels,
        has_side_effect=True,
        ordered=TAP,
        device=placed(ctx, device_index),
        build=building(counted, device_index),
    )


tap_call_p.def_effectful_abstract_eval(_abstract_eval)
tap_call_p.def_impl(_impl)
jax_compat.ad.primitive_jvps[tap_call_p] = _jvp
jax_compat.ad.primitive_transposes[tap_call_p] = _transpose
jax_compat.register_batching(tap_call_p, _batch)
jax_compat.partial_eval_jaxpr_custom_rules[tap_call_p] = recomputing(tap_call_p)
jax_compat.stay_in_loops(tap_call_p)
jax_compat.mlir.register_lowering(tap_call_p, _lower, cacheable=False)  # as in _pure.py


def bind_tap_call(
    host: HostFunction,
    arg: Any,
    declared: tuple[tuple[Any, ...], Any],
    *,
    with_device: bool = False,
    device_index: int = 0,
) -> Any:
    """Bind one call; return a pytree of the declared structure.

    Args:
        host: the host function.
        arg: a pytree of arrays, passed as NumPy arrays.
        declared: flat avals and structure of the result.
        with_device: whether the host function gets the keyword ``device``.
        device_index: see `host_callback.call`.
    """
    __tracebackhide__ = True
    jax_compat.hold_finished_elements(tap_call_p)
    return bind_host_call(
        tap_call_p,
        host,
        declared,
        (arg,),
        {"device": DEVICE} if with_device else {},
        Options(flavor="tap"),
        exact=True,
        device_index=device_index,
    )
