"""What to type, in the words of the place where a host function was made a callback."""

from __future__ import annotations

import difflib
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
    """``vmap_method='sequential'``, or for the magic ``--vmap-method sequential``."""
    keyword = f"{name}={value!r}"
    return in_the_line(keyword, [name]) if host.made_by == "magic" else keyword


def in_the_line(text: str, names: Iterable[str]) -> str:
    """`text` with keyword arguments as options in the line of the magic.

    Args:
        text: ``"pass vmap_method='sequential', or a rule: defjvp"``.
        names: of the keyword arguments that are options there.

    Returns:
        ``"pass --vmap-method sequential, or a rule: --jvp NAME"``.
    """

    def flag(found: re.Match[str]) -> str:
        name, value = found.groups(default="")
        value = "" if value == "True" else value.strip("'")
        return " ".join(filter(None, [f"--{name.replace('_', '-')}", value]))

    text = re.sub(rf"(?<![\w(])({'|'.join(names)})=('[^']*'|<[^>]*>|[-\w]+(?:\.\w+)*)?", flag, text)
    for method, option_of_it in _RULES.items():
        text = re.sub(rf"(?<![.@])\b{method}\b", option_of_it, text)
    return text


def nearest(word: str, choices: Iterable[str]) -> str:
    """``; did you mean 'pure'?`` where one of `choices` is close, else a full stop."""
    close = difflib.get_close_matches(word, list(choices), 1)
    return f"; did you mean {close[0]!r}?" if close else "."


def how_to_differentiate(host: HostFunction, *, finite: bool = False) -> str:
    """The ways to give `host` a derivative; `finite` differences may be one."""
    name = host.name
    if host.made_by == "call":
        others = ', or register the function: jaxcb.pure(..., derivative="finite")'
        return f"Wrap the call in jax.custom_jvp or jax.custom_vjp{others if finite else ''}."
    rules = f"Give it a rule: @{name}.defjvp or {name}.defvjp"
    if host.made_by == "magic":
        more = " or --derivative finite" if finite else ""
        return f"{rules}, or in the line of its cell --jvp NAME, --vjp FORWARD BACKWARD{more}."
    return f'{rules}, or register it with derivative="finite".' if finite else f"{rules}."


def how_to_transpose(host: HostFunction) -> str:
    """The ways to give `host` a reverse rule."""
    if host.made_by == "call":
        return "Wrap the call in jax.custom_vjp."
    cell = ", or in the line of its cell --vjp FORWARD BACKWARD" if host.made_by == "magic" else ""
    return f"Give it a rule: {host.name}.defvjp(forward, backward){cell}."


def as_debug(host: HostFunction) -> str:
    """What would have made `host` a debug callback."""
    return _DEBUG[host.made_by]
