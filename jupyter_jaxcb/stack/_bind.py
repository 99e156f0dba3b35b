"""From a user's call to one flat bind, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
from jax.tree_util import PyTreeDef, tree_flatten, tree_unflatten

from . import _jax, _programs
from ._callback import NO_STATIC, Bind, HostCallback, HostFunction, Static
from ._site import find_site


def bind_host_call(
    primitive: _jax.Primitive,
    flavor: str,
    host: HostFunction,
    out: tuple[tuple[Any, ...], PyTreeDef],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    **params: Any,
) -> Any:
    """Binds `primitive` to the flat arrays of one call.

    Args:
        primitive: of the flavor.
        flavor: its name, for the site.
        host: the host function.
        out: flat avals and structure of the declared result.
        args: positional arguments of the call, pytrees of array-likes.
        kwargs: keyword arguments of the call.
        **params: further static parameters of the primitive.

    Returns:
        A pytree of the declared structure.
    """
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    flat, in_tree = tree_flatten((args, kwargs))
    avals, out_tree = out
    bind = Bind(find_site(flavor, host.name))
    callback = HostCallback(host, in_tree, out_tree, bind)
    _programs.bound(bind)
    results = primitive.bind(*flat, callback=callback, result_avals=avals, levels=(), **params)
    return tree_unflatten(out_tree, results)


def bind_silent_call(
    primitive: _jax.Primitive,
    flavor: str,
    host: HostFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    **params: Any,
) -> None:
    """Binds a flavor that returns nothing; arguments that are no arrays stay static."""
    __tracebackhide__ = True  # IPython and pytest: not a frame the user cares for
    flat, in_tree = tree_flatten((args, kwargs))
    static = {i: leaf for i, leaf in enumerate(flat) if not _is_array(leaf)}
    arrays = [leaf for i, leaf in enumerate(flat) if i not in static]
    bind = Bind(find_site(flavor, host.name))
    callback = HostCallback(host, in_tree, None, bind, Static(static) if static else NO_STATIC)
    _programs.bound(bind)
    primitive.bind(*arrays, callback=callback, result_avals=(), levels=(), **params)


def _is_array(leaf: Any) -> bool:
    try:
        jax.typeof(leaf)
    except TypeError:
        return False
    return True
