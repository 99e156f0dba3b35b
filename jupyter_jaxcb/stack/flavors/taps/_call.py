"""host_callback.call: a host function with a result, in the order of the taps."""

from __future__ import annotations

from typing import Any, NoReturn

from .... import jax_compat
from ...call import HostCallback, HostFunction
from ...options import Options
from .. import bind
from ._effect import DEVICE, InOrder


class TapCall(InOrder):
    """A call with a result: JAX transforms none of them."""

    name = "tap_call"

    def no_jvp(self, callback: HostCallback) -> Exception:
        """Return the error of a derivative."""
        return NotImplementedError(
            f"cannot differentiate {callback}: JVP rule is implemented only for id_tap, not for "
            "call. Wrap the call in jax.custom_vjp or jax.custom_jvp, or pass its argument through "
            "jax.lax.stop_gradient."
        )

    def no_transpose(self, callback: HostCallback) -> Exception:
        """Return the error of a transpose."""
        return NotImplementedError(
            f"cannot transpose {callback}: transpose rule is implemented only for id_tap, not for "
            "call. Wrap the call in jax.custom_vjp."
        )

    def batch(self, args: Any, dims: Any, *, callback: HostCallback, **params: Any) -> NoReturn:
        """Raise the error of a vmap."""
        __tracebackhide__ = True
        raise NotImplementedError(
            f"cannot vmap {callback}: batching rules are implemented only for id_tap, not for "
            "call. Loop with jax.lax.map, or use jupyter_jaxcb.io or pure, which have a rule for "
            "vmap."
        )


TAP_CALL = TapCall()


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
    jax_compat.hold_finished_elements(TAP_CALL.primitive)
    return bind(
        TAP_CALL, host, (arg,), {"device": DEVICE} if with_device else {}, Options(flavor="tap"),
        declared, exact=True, device_index=device_index,
    )  # fmt: skip
