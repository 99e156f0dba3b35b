"""Derivative rules of registered callbacks, as thin wrappers of jax.custom_jvp and custom_vjp."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.tree_util import tree_leaves

from ..core import is_array
from ._rule_checks import Rule, checked_jvp, checked_vjp


def with_jvp(
    primal: Callable[..., Any],
    rule: Rule,
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
) -> Callable[..., Any]:
    """Return `primal` with a forward-mode rule, as ``jax.custom_jvp(primal).defjvp(rule)``."""
    _check_callable("defjvp", rule)
    differentiable = jax.custom_jvp(primal, nondiff_argnums=tuple(nondiff_argnums))
    checked = checked_jvp(rule, nondiff_argnums)
    differentiable.defjvp(checked, symbolic_zeros=symbolic_zeros)
    return _without_static(differentiable, primal, rule.name, nondiff_argnums)


def with_vjp(
    primal: Callable[..., Any],
    forward: Rule,
    backward: Rule,
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
) -> Callable[..., Any]:
    """Return `primal` with a reverse-mode rule, as ``jax.custom_vjp(primal).defvjp(...)``."""
    _check_callable("defvjp", forward)
    _check_callable("defvjp", backward)
    differentiable = jax.custom_vjp(primal, nondiff_argnums=tuple(nondiff_argnums))
    checked = checked_vjp(forward, backward, nondiff_argnums)
    differentiable.defvjp(*checked, symbolic_zeros=symbolic_zeros)
    return _without_static(differentiable, primal, forward.name, nondiff_argnums)


def _without_static(
    differentiable: Callable[..., Any],
    primal: Callable[..., Any],
    name: str,
    nondiff_argnums: Sequence[int],
) -> Callable[..., Any]:
    """Wrap `differentiable` to raise a helpful TypeError for arguments that are not arrays."""

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        for n, arg in enumerate(_positional(primal, args, kwargs)):
            if n not in nondiff_argnums and not all(map(is_array, tree_leaves(arg))):
                raise TypeError(
                    f"cannot call {name} with {arg!r} as argument {n}: it is not an array, and "
                    f"{name} has a derivative rule. Define the rule with nondiff_argnums=({n},); "
                    "it then gets this argument first."
                )
        return differentiable(*args, **kwargs)

    return call


def _positional(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Return `args` completed by `kwargs` and defaults, or `args` alone if they do not match."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):  # ValueError: it has no signature
        return args
    bound.apply_defaults()
    return bound.args


def _check_callable(method: str, rule: Rule) -> None:
    __tracebackhide__ = True
    if not callable(rule.function):
        raise TypeError(
            f"cannot use {rule.function!r} as a derivative rule of {rule.name}: it is not a "
            f"function. Call {rule.name}.{method} as you would jax.custom_{method[3:]}'s."
        )
