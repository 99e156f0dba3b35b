"""Turn a user's call into one flat bind, and its results back into a pytree."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from jax.tree_util import PyTreeDef, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

from ... import jax_compat
from .. import elision
from ..call import NO_STATIC, Bind, HostCallback, HostFunction, Static, is_array, to_array
from ..options import Options
from ..trace import find_frames, frames_of_rule, is_disabled, left_out
from ._vmap import placed_as_operands


def bind_host_call(
    primitive: jax_compat.Primitive,
    host: HostFunction,
    out: tuple[tuple[Any, ...], PyTreeDef],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Options,
    *,
    mask: Any = None,
    exact: bool = False,
    any_structure: bool = False,
    leading: int = 0,
    **params: Any,
) -> Any:
    """Bind `primitive` to the flat arrays of one call.

    Args:
        primitive: the primitive of the flavor.
        host: the host function.
        out: flat avals and structure of the declared result.
        args: positional arguments of the call: pytrees of array-likes. A leaf that is not an array
            is static, as in `jax.jit`: it must be hashable and is compared by value.
        kwargs: keyword arguments of the call.
        options: the options of the callback.
        mask: whether to call the host function, a boolean scalar; None: it is always called.
        exact: whether a result must match the declaration without any conversion.
        any_structure: whether a result of another structure, whose leaves fit, is only a warning.
        leading: the number of parameters of the host function before the arguments of a call.
        **params: further static parameters of the primitive.

    Returns:
        A pytree of the declared structure.

    Raises:
        TypeError: an argument is neither an array nor hashable.
    """
    __tracebackhide__ = True
    flat, in_tree = tree_flatten((args, kwargs))
    arrays, static = _split(flat)
    if static:
        _check_static(static, in_tree, host)
    avals, out_tree = out
    if is_disabled():
        return tree_unflatten(out_tree, left_out(host.name, avals))
    results = _bind(
        primitive, host, arrays, avals, params, mask, in_tree=in_tree, out_tree=out_tree,
        static=Static(static, by_value=True) if static else NO_STATIC, options=options,
        exact=exact, any_structure=any_structure, leading=leading,
    )  # fmt: skip
    return tree_unflatten(out_tree, results)


def bind_silent_call(
    primitive: jax_compat.Primitive,
    host: HostFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Options,
    *,
    mask: Any = None,
) -> None:
    """Bind a flavor that returns nothing; arguments that are not arrays stay static."""
    __tracebackhide__ = True
    if is_disabled():
        return
    flat, in_tree = tree_flatten((args, kwargs))
    arrays, static = _split(flat)
    _bind(
        primitive, host, arrays, (), {}, mask, in_tree=in_tree, out_tree=None,
        static=Static(static) if static else NO_STATIC, options=options,
    )  # fmt: skip


def bind_passing_call(
    primitive: jax_compat.Primitive,
    host: HostFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Options,
    **params: Any,
) -> list[Any]:
    """Bind a flavor that returns its operands.

    Leaves that are not arrays are placeholders, filled in when the crossing is built.

    Returns:
        One array for each array among the leaves of `args` and `kwargs`.
    """
    __tracebackhide__ = True
    flat, in_tree = tree_flatten((args, kwargs))
    arrays, static = _split(flat)
    if is_disabled():
        return [to_array(x) for x in arrays]
    return _bind(
        primitive, host, arrays, (), params, None, in_tree=in_tree, out_tree=None,
        static=Static(static, by_value=True), options=options,
    )  # fmt: skip


def _bind(
    primitive: jax_compat.Primitive,
    host: HostFunction,
    operands: list[Any],
    avals: tuple[Any, ...],
    params: Mapping[str, Any],
    mask: Any,
    *,
    options: Options,
    **of_callback: Any,
) -> list[Any]:
    """Bind `primitive`, with the line of user code that made the call as its call site.

    Args:
        primitive: the primitive of the flavor.
        host: the host function.
        operands: the arrays of the call.
        avals: avals of the results.
        params: further static parameters of the primitive.
        mask: whether to call the host function, as the last operand; None: there is no mask.
        options: the options of the callback.
        **of_callback: further fields of the `HostCallback`.
    """
    __tracebackhide__ = True
    found = find_frames()
    frames = frames_of_rule() or found.frames
    bind = Bind(frames.site(options.flavor, host.name), found.around, found.in_rule)
    elision.bound(bind, found)
    callback = HostCallback(
        host, bind=bind, options=options, masked=mask is not None, **of_callback
    )
    operands = operands if mask is None else [*operands, mask]
    return _bound(primitive, callback, operands, avals, params)


def anew(callback: HostCallback, name: str = "") -> Bind:
    """Return a bind that a derivative makes now, at the call site of the callback's own.

    Args:
        callback: what is differentiated.
        name: the name of the host function; empty: it is the same one.
    """
    found, site = find_frames(), callback.bind.site
    site = dataclasses.replace(site, function=name) if name else site
    bind = Bind(site, found.around, in_rule=True)
    elision.bound(bind, found)
    return bind


def bind_again(
    primitive: jax_compat.Primitive,
    callback: HostCallback,
    host: HostFunction,
    out: tuple[Sequence[Any], PyTreeDef],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    options: Options,
    *,
    behind: Sequence[Any],
    **params: Any,
) -> Any:
    """As `bind_host_call`, for a call that the derivative of another callback makes.

    Args:
        primitive: the primitive of the flavor.
        callback: what is differentiated; the call has its call site.
        host: the host function.
        out: flat avals and structure of the result.
        args: positional arguments of the call, as in `bind_host_call`.
        kwargs: keyword arguments of the call.
        options: the options of the callback to call.
        behind: operands behind the arguments, of the same meaning as those of `callback`.
        **params: further static parameters of the primitive.
    """
    __tracebackhide__ = True
    flat, in_tree = tree_flatten((args, kwargs))
    arrays, static = _split(flat)
    avals, out_tree = out
    again = dataclasses.replace(
        callback, host=host, in_tree=in_tree, out_tree=out_tree, options=options,
        bind=anew(callback, host.name),
        static=Static(static, by_value=True) if static else NO_STATIC,
    )  # fmt: skip
    operands = [*arrays, *behind]
    return tree_unflatten(out_tree, _bound(primitive, again, operands, tuple(avals), params))


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
