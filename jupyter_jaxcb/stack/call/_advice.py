"""Word the advice in error messages to match how the callback was registered."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from ._callback import HostFunction, plain_signature


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``; did you mean 'pure'?`` if one of `choices` is close to `word`, else ``.``."""
    close = difflib.get_close_matches(word, list(choices), 1)
    return f"; did you mean {close[0]!r}?" if close else "."


def how_to_differentiate(host: HostFunction, *, finite: bool = False) -> str:
    """Return how to give `host` a derivative; mention finite differences if `finite`."""
    if host.made_by == "call":
        others = ', or register the function: jaxcb.pure(..., derivative="finite")'
        return f"Wrap the call in jax.custom_jvp or jax.custom_vjp{others if finite else ''}."
    if host.rule in ("jvp", "vjp"):
        return (
            "It has a rule, which JAX drops when it differentiates a scan or another loop in "
            "reverse mode. For second derivatives of a loop, differentiate in forward mode first: "
            "jax.jacrev(jax.jacfwd(...))."
        )
    rules = f"Give it a rule: @{host.variable}.defjvp or {host.variable}.defvjp"
    return f'{rules}, or register it with derivative="finite".' if finite else f"{rules}."


def how_to_transpose(host: HostFunction, leading: int = 0) -> str:
    """Return how to give `host`, which may be linear, a transpose or a reverse-mode rule.

    Args:
        host: the host function.
        leading: the number of its parameters before the arguments of a call.
    """
    name = host.name
    if host.made_by == "call":
        return (
            "If it is linear, register the function by jaxcb.pure with linear=, the parameter in "
            "which it is, and define its transpose with deftranspose. For jax.grad, wrap the call "
            "in jax.custom_vjp."
        )
    try:
        parameters = [*plain_signature(host.current).parameters]
    except (TypeError, ValueError):  # unknown
        parameters = []
    named = [f"linear={one!r}" for one in parameters[leading:][:3]]
    start = (
        f"If it is linear, register it with {' or '.join(named) or 'linear='}, the parameter in "
        f"which it is, and define its transpose: @{host.variable}.deftranspose"
    )
    if host.rule == "jvp":
        return (
            f"{start}. If jax.jvp is not needed, register {name} again with defvjp in place of "
            "defjvp."
        )
    return f"{start}. For jax.grad, give it a rule: {host.variable}.defvjp(forward, backward)."


def debug_equivalent(host: HostFunction) -> str:
    """Return the name of the API that registers `host` as a debug callback."""
    return "jaxcb.debug_callback" if host.made_by == "call" else "@jaxcb.debug"
