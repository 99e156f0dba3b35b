"""Derivative rules of registered callbacks, as thin wrappers of jax.custom_jvp and custom_vjp."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
from jax.tree_util import tree_leaves

from ... import jax_compat
from ...stack.call import is_array, text_of
from ._rule_checks import Rule, checked_jvp, checked_vjp

_Rule = Callable[..., Any]


class Gate(NamedTuple):
    """Makes rules of functions with such an argument from rules without it."""

    jvp: Callable[[_Rule], _Rule]
    vjp: Callable[[_Rule, _Rule, Sequence[int]], tuple[_Rule, _Rule]]  # and the nondiff_argnums
    tangents: Callable[[_Rule], _Rule]  # of a rule that takes this argument, and only its tangents


def with_jvp(
    primal: Callable[..., Any],
    rule: Rule,
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
    *,
    gate: Gate | None = None,
) -> Callable[..., Any]:
    """Return `primal` with a forward-mode rule, as ``jax.custom_jvp(primal).defjvp(rule)``.

    With a `gate`, the first argument of `primal` is the gate's, and not the user's.
    """
    __tracebackhide__ = True
    _check_callable("defjvp", rule)
    checked = checked_jvp(rule, nondiff_argnums)
    checked, first = (checked, 0) if gate is None else (gate.jvp(checked), 1)
    places = tuple(n + first for n in nondiff_argnums)

    def differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
        made = jax.custom_jvp(function, nondiff_argnums=places)
        made.defjvp(checked, symbolic_zeros=symbolic_zeros)
        return made

    return _wrapped(primal, differentiable, rule.name, places, first)


def with_vjp(
    primal: Callable[..., Any],
    forward: Rule,
    backward: Rule,
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
    *,
    gate: Gate | None = None,
) -> Callable[..., Any]:
    """Return `primal` with a reverse-mode rule, as ``jax.custom_vjp(primal).defvjp(...)``.

    With a `gate`, the first argument of `primal` is the gate's, and not the user's.
    """
    __tracebackhide__ = True
    _check_callable("defvjp", forward)
    _check_callable("defvjp", backward)
    checked = checked_vjp(forward, backward, nondiff_argnums)
    checked, first = (checked, 0) if gate is None else (gate.vjp(*checked, nondiff_argnums), 1)
    places = tuple(n + first for n in nondiff_argnums)

    def differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
        made = jax.custom_vjp(function, nondiff_argnums=places)
        made.defvjp(*checked, symbolic_zeros=symbolic_zeros)
        return made

    return _wrapped(primal, differentiable, forward.name, places, first)


def _wrapped(
    primal: Callable[..., Any],
    differentiable: Callable[[Callable[..., Any]], Callable[..., Any]],
    name: str,
    nondiff_argnums: Sequence[int],
    first: int,
) -> Callable[..., Any]:
    """Return `primal` with the rule that `differentiable` adds.

    It raises a helpful TypeError for arguments that are not arrays.
    """
    shared = differentiable(primal)

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        for n, arg in enumerate(_positional(primal, args, kwargs)):
            if n not in nondiff_argnums and not all(map(is_array, tree_leaves(arg))):
                place = n - first
                raise TypeError(
                    f"cannot call {name} with {arg!r} as argument {place}: it is not an array, and "
                    f"{name} has a derivative rule. Define the rule with nondiff_argnums=({place},"
                    "); it then gets this argument first."
                )
        args, kwargs = jax_compat.vary_together((args, kwargs))
        chosen = differentiable(_copy(primal)) if _traces_once() else shared
        return chosen(*args, **kwargs)

    return call


def _traces_once() -> bool:
    """Return whether JAX traces a function with a rule only once for all its calls.

    The custom_jvp and custom_vjp that will replace the present ones do. All calls would have the
    call site of the first, so each gets a function of its own.
    """
    options = ("jax_custom_jvp3", "jax_custom_vjp3")
    return any(getattr(jax.config, option, False) for option in options)


def _copy(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        return function(*args, **kwargs)

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
            f"cannot use {text_of(rule.function)} as a derivative rule of {rule.name}: it is not a "
            f"function. Call {rule.name}.{method} as you would jax.custom_{method[3:]}'s."
        )
