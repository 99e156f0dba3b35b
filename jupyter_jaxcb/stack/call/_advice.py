"""Word the advice in error messages to match how the callback was registered.

Advice on a callback made by the magic names magic options; otherwise it names keyword arguments.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Iterable

from ._callback import HostFunction

_DEBUG = {
    "call": "jaxcb.debug_callback",
    "decorator": "@jaxcb.debug",
    "magic": "%%jax_callback debug",
}
_RULES = {"defjvp": "--jvp NAME", "defvjp": "--vjp FORWARD BACKWARD"}


def option(host: HostFunction, name: str, value: str | bool = True) -> str:
    """Return ``vmap_method='sequential'``, or ``--vmap-method sequential`` for the magic."""
    keyword = f"{name}={value!r}"
    return as_magic_options(keyword, [name]) if host.made_by == "magic" else keyword


def as_magic_options(text: str, names: Iterable[str]) -> str:
    """Return `text` with its keyword arguments rewritten as options of the magic.

    Args:
        text: ``"pass vmap_method='sequential', or a rule: defjvp"``.
        names: the keyword arguments that the magic has as options.

    Returns:
        ``"pass --vmap-method sequential, or a rule: --jvp NAME"``.
    """

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups(default="")
        value = "" if value == "True" else value.strip("'")
        return " ".join(filter(None, [f"--{name.replace('_', '-')}", value]))

    value = r"""'[^']*'|"[^"]*"|<[^>]*>|[-\w]+(?:\.\w+)*"""
    text = re.sub(rf"(?<![\w(])({'|'.join(names)})=({value})?", flag, text)
    for method, option_of_it in _RULES.items():
        text = re.sub(rf"(?<![.@])\b{method}\b", option_of_it, text)
    return text


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
    if host.made_by == "magic":
        options = "--jvp NAME, --vjp FORWARD BACKWARD or --derivative finite"
        if not finite:
            options = "--jvp NAME or --vjp FORWARD BACKWARD"
        return f"{rules}, or add {options} to its magic line."
    if host.rule == "finite":
        return f"Finite differences give no second derivative. {rules}."
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
        parameters = [*inspect.signature(host.current).parameters]
    except (TypeError, ValueError):  # unknown
        parameters = []
    named = [option(host, "linear", one) for one in parameters[leading:][:3]]
    start = (
        f"If it is linear, register it with {' or '.join(named) or 'linear='}, the parameter in "
        f"which it is, and define its transpose: @{host.variable}.deftranspose"
    )
    if host.rule == "jvp":
        return (
            f"{start}. If jax.jvp is not needed, register {name} again with defvjp in place of "
            "defjvp."
        )
    more = ", or add --vjp FORWARD BACKWARD to its magic line" if host.made_by == "magic" else ""
    return (
        f"{start}. For jax.grad, give it a rule: {host.variable}.defvjp(forward, backward){more}."
    )


def debug_equivalent(host: HostFunction) -> str:
    """Return the name of the API that registers `host` as a debug callback."""
    return _DEBUG[host.made_by]
