"""The jvp and transpose rules of callbacks that may have a derivative.

JAX cannot see inside a host function. Capabilities register the callbacks of which they know more
(`differentiates`); for the others the rules raise an error that says how to define a derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ... import jax_compat
from ..call import HostCallback, how_to_differentiate, how_to_transpose, number_to_array


class Differentiation(NamedTuple):
    """The derivative of some callbacks, as rules of JAX for the primitive of their flavor.

    Attributes:
        applies: whether these are the rules of a callback.
        jvp: ``jvp(primitive, primals, tangents, **params)`` returns results and their tangents.
        transpose: ``transpose(primitive, cotangents, *args, **params)`` returns the cotangents of
            `args`.
    """

    applies: Callable[[HostCallback], bool]
    jvp: Callable[..., tuple[Sequence[Any], Sequence[Any]]]
    transpose: Callable[..., Sequence[Any]]


_known: list[Differentiation] = []


def differentiates(rules: Differentiation) -> None:
    """Register the derivative of some callbacks."""
    _known.append(rules)


def derivative_rules(primitive: jax_compat.Primitive, kind: str, *, finite: bool = False) -> None:
    """Register jvp and transpose rules: those of a capability, or errors that explain what to do.

    Args:
        primitive: the primitive of a flavor whose callbacks may have a derivative rule.
        kind: ``"Pure"`` or ``"Buffer"``, for the message.
        finite: whether the message suggests finite differences.
    """

    def jvp(primals: Any, tangents: Any, *, callback: HostCallback, **params: Any) -> Any:
        __tracebackhide__ = True
        for known in _known:
            if known.applies(callback):
                given = [list(map(number_to_array, one)) for one in (primals, tangents)]
                return known.jvp(primitive, *given, callback=callback, **params)
        raise ValueError(
            f"cannot differentiate {callback}: JAX cannot see inside a host function. {kind} "
            "callbacks do not support JVP. "
            f"{how_to_differentiate(callback.host, finite=finite)}"
        )

    def transpose(cotangents: Any, *args: Any, callback: HostCallback, **params: Any) -> Any:
        __tracebackhide__ = True
        for known in _known:
            if known.applies(callback):
                given = map(number_to_array, args)
                cotangents = list(map(number_to_array, cotangents))
                return known.transpose(primitive, cotangents, *given, callback=callback, **params)
        raise ValueError(
            f"cannot transpose {callback}: JAX cannot see inside a host function. {kind} callbacks "
            f"do not support transpose. {how_to_transpose(callback.host, callback.leading)}"
        )

    jax_compat.ad.primitive_jvps[primitive] = jvp
    jax_compat.ad.primitive_transposes[primitive] = transpose
