"""Turn a user's call into one flat bind, and its results back into a pytree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jax.tree_util import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

from ... import jax_compat
from .. import elision
from ..call import NO_STATIC, Bind, HostCallback, HostFunction, Static, is_array
from ..options import Options
from ..trace import find_frames, is_disabled
from ._flavor import Flavor
from ._vmap import placed_as_operands


def bind(
    flavor: Flavor,
    host: HostFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Options,
    out: tuple[tuple[Any, ...], PyTreeDef | None] = ((), None),
    *,
    mask: Any = None,
    exact: bool = False,
    any_structure: bool = False,
    leading: int = 0,
    **params: Any,
) -> Any:
    """Bind the primitive of a flavor to the flat arrays of one call.

    Its call site is the line of user code that makes the call.

    Args:
        flavor: the flavor.
        host: the host function.
        args: positional arguments of the call: pytrees of array-likes. A leaf that is not an array
            is static, as in `jax.jit`: it must be hashable and is compared by value. Those of debug
            callbacks may be anything.
        kwargs: keyword arguments of the call.
        options: the options of the callback.
        out: flat avals and structure of the declared result.
        mask: whether to call the host function, a boolean scalar; None: it is always called.
        exact: whether a result must match the declaration without any conversion.
        any_structure: whether a result of another structure, whose leaves fit, is only a warning.
        leading: the number of parameters of the host function before the arguments of a call.
        **params: further static parameters of the primitive.

    Returns:
        A pytree of the declared structure; without one, a list of arrays.

    Raises:
        TypeError: an argument is neither an array nor hashable.
    """
    __tracebackhide__ = True
    flat, in_tree = tree_flatten((args, kwargs))
    arrays, static = _split(flat)
    if static and flavor.by_value:
        _check_static(static, in_tree, host)
    avals, out_tree = out
    if is_disabled():
        results = flavor.disabled(host.name, arrays, avals)
    else:
        found = find_frames()
        site = found.frames.site(options.flavor, host.name)
        has_rule = any(row.jvp for row in options.capabilities)
        is_replaced = has_rule and "derivative of binds" in found.kinds
        bind = Bind(site, found.around, found.in_rule, is_replaced)
        elision.bound(bind, found)
        if mask is not None:
            arrays, options = [*arrays, mask], options.with_mask
        callback = HostCallback(
            host, options, in_tree, out_tree, bind,
            Static(static, by_value=flavor.by_value) if static else NO_STATIC,
            exact, any_structure, leading,
        )  # fmt: skip
        results = _bound(flavor.primitive, callback, arrays, avals, params)
    return results if out_tree is None else tree_unflatten(out_tree, results)


def _bound(
    primitive: jax_compat.Primitive,
    callback: HostCallback,
    operands: list[Any],
    avals: tuple[Any, ...],
    params: Mapping[str, Any],
) -> list[Any]:
    __tracebackhide__ = True
    if avals:
        operands = jax_compat.vary_together(operands)
    results = primitive.bind(*operands, callback=callback, result_avals=avals, levels=(), **params)
    in_parts = callback.options.partitioned and results
    return placed_as_operands(callback, operands, results) if in_parts else results


def _split(leaves: list[Any]) -> tuple[list[Any], dict[int, Any]]:
    """Split `leaves` into the arrays and the static values, the latter by index."""
    static = {i: leaf for i, leaf in enumerate(leaves) if not is_array(leaf)}
    return [leaf for i, leaf in enumerate(leaves) if i not in static], static


def _check_static(static: Mapping[int, Any], in_tree: PyTreeDef, host: HostFunction) -> None:
    __tracebackhide__ = True
    for place, value in static.items():
        try:
            hash(value)
        except TypeError:
            places = tree_unflatten(in_tree, range(in_tree.num_leaves))
            path = keystr(tree_flatten_with_path(places)[0][place][0][1:])
            raise TypeError(
                f"cannot pass {value!r} to {host.name} (argument {path}): a "
                f"{type(value).__name__} is not a valid JAX type and not hashable. "
                "Pass its arrays, register its type as a pytree, or use functools.partial."
            ) from None
