"""What to type, in the words of the place where a host function was made a callback."""

from __future__ import annotations

from ._callback import HostFunction

_DEBUG = {
    "call": "jaxcb.debug_callback",
    "decorator": "@jaxcb.debug",
    "magic": "%%jax_callback debug",
}


def option(host: HostFunction, name: str, value: str | bool = True) -> str:
    """``vmap_method='sequential'``, or for the magic ``--vmap-method sequential``."""
    if host.made_by != "magic":
        return f"{name}={value!r}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value is True else f"{flag} {value}"


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
