"""From a user's call to one flat bind, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jax.tree_util import (
    PyTreeDef,
    keystr,
    tree_flatten,
    tree_flatten_with_path,
    tree_unflatten,
)

from .. import elision, jax_compat
from ..core import (
    NO_STATIC,
    Bind,
    ExecutorOptions,
    HostCallback,
    HostFunction,
    Static,
    find_site,
    is_array,
    is_disabled,
    left_out,
    to_array,
)


def bind_host_call(
    primitive: jax_compat.Primitive,
    flavor: str,
    host: HostFunction,
    out: tuple[tuple[Any, ...], PyTreeDef],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    kind: str = "numpy",
    cast: bool = False,
    exact: bool = False,
    spread: ExecutorOptions | None = None,
    **params: Any,
) -> Any:
    """Binds `primitive` to the flat arrays of one call.

    Args:
        primitive: of the flavor.
        flavor: its name, for the site.
        host: the host function.
        out: flat avals and structure of the declared result.
        args: positional arguments of the call, pytrees of array-likes. What is no array is static,
            as jit has it: hashable, and compared by its value.
        kwargs: keyword arguments of the call.
        kind: of arrays the host function gets, see `_arrays`.
        cast: whether an answer may lose when it is converted within its kind.
        exact: whether an answer is taken as it is, or not at all.
        spread: over workers of an executor; None: not.
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
        primitive, flavor, host, arrays, avals, params, in_tree=in_tree, out_tree=out_tree,
        static=Static(static, by_value=True) if static else NO_STATIC, arrays=kind, cast=cast,
        exact=exact, spread=spread,
    )  # fmt: skip
    return tree_unflatten(out_tree, results)


def bind_silent_call(
    primitive: jax_compat.Primitive,
    flavor: str,
    host: HostFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    kind: str = "numpy",
    **params: Any,
) -> None:
    """Binds a flavor that returns nothing; arguments that are no arrays stay static."""
    __tracebackhide__ = True
    if is_disabled():
        return
    flat, in_tree = tree_flatten((args, kwargs))
    arrays, static = _split(flat)
    _bind(
        primitive, flavor, host, arrays, (), params, in_tree=in_tree, out_tree=None,
        static=Static(static) if static else NO_STATIC, arrays=kind,
    )  # fmt: skip


def bind_passing_call(
    primitive: jax_compat.Primitive,
    flavor: str,
    host: HostFunction,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    **params: Any,
) -> list[Any]:
    """Binds a flavor that returns its operands; what is no array stands for what is said later.

    Returns:
        As many arrays as there are among the leaves of `args` and `kwargs`.
    """
    __tracebackhide__ = True
    flat, in_tree = tree_flatten((args, kwargs))
    arrays, static = _split(flat)
    if is_disabled():
        return [to_array(x) for x in arrays]
    return _bind(
        primitive, flavor, host, arrays, (), params, in_tree=in_tree, out_tree=None,
        static=Static(static, by_value=True),
    )  # fmt: skip


def _bind(
    primitive: jax_compat.Primitive,
    flavor: str,
    host: HostFunction,
    operands: list[Any],
    avals: tuple[Any, ...],
    params: Mapping[str, Any],
    **of_callback: Any,
) -> list[Any]:
    """Binds `primitive` at the line of user code that asks for it.

    Args:
        primitive: of the flavor.
        flavor: its name.
        host: the host function.
        operands: the arrays of the call.
        avals: of the results.
        params: further static parameters of the primitive.
        **of_callback: further fields of the `HostCallback`.
    """
    __tracebackhide__ = True
    found = find_site(flavor, host.name)
    bind = Bind(found.site, found.around)
    elision.bound(bind, found)
    callback = HostCallback(host, bind=bind, **of_callback)
    return primitive.bind(*operands, callback=callback, result_avals=avals, levels=(), **params)


def _split(leaves: list[Any]) -> tuple[list[Any], dict[int, Any]]:
    """The arrays among `leaves`, and the others by their place."""
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
                f"cannot pass {value!r} to {host.name}, at {path} of its arguments: a "
                f"{type(value).__name__} is not a valid JAX type, and not hashable either, as a "
                "static argument must be. Pass its arrays, register its type as a pytree, or bind "
                "it with functools.partial."
            ) from None
