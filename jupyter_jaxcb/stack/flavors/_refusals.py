"""Raise an error when JAX differentiates or transposes a callback without a derivative rule."""

from __future__ import annotations

from typing import Any, NoReturn

from ... import jax_compat
from ..call import HostCallback, how_to_differentiate, how_to_transpose


def refuse_derivatives(primitive: jax_compat.Primitive, kind: str, *, finite: bool = False) -> None:
    """Register jvp and transpose rules that raise ValueError and explain how to define a rule.

    Args:
        primitive: the primitive of a flavor whose callbacks may have a derivative rule.
        kind: ``"Pure"`` or ``"Buffer"``, for the message.
        finite: whether the message suggests finite differences.
    """

    def jvp(primals: Any, tangents: Any, *, callback: HostCallback, **params: Any) -> NoReturn:
        __tracebackhide__ = True
        raise ValueError(
            f"cannot differentiate {callback}: JAX cannot see inside a host function. {kind} "
            "callbacks do not support JVP. "
            f"{how_to_differentiate(callback.host, finite=finite)}"
        )

    def transpose(cotangents: Any, *args: Any, callback: HostCallback, **params: Any) -> NoReturn:
        __tracebackhide__ = True
        raise ValueError(
            f"cannot transpose {callback}: JAX cannot see inside a host function. {kind} callbacks "
            f"do not support transpose. {how_to_transpose(callback.host)}"
        )

    jax_compat.ad.primitive_jvps[primitive] = jvp
    jax_compat.ad.primitive_transposes[primitive] = transpose
