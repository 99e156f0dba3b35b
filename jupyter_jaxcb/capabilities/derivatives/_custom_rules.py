"""Derivative rules of registered callbacks, as thin wrappers of jax.custom_jvp and custom_vjp."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.custom_derivatives import CustomVJPPrimal
from jax.tree_util import tree_leaves, tree_map

from ...stack.call import is_array
from ..masked import masking, with_stand_ins, zero_elsewhere
from ._rule_checks import Rule, checked_jvp, checked_vjp, plain


def with_jvp(
    primal: Callable[..., Any],
    rule: Rule,
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
    *,
    masked: bool = False,
) -> Callable[..., Any]:
    """Return `primal` with a forward-mode rule, as ``jax.custom_jvp(primal).defjvp(rule)``.

    If `masked`, the first argument of `primal` is a mask, which masks the rule's callbacks too.
    """
    __tracebackhide__ = True
    _check_callable("defjvp", rule)
    checked = checked_jvp(rule, nondiff_argnums)
    checked = _masked_jvp(checked) if masked else checked
    places = tuple(n + masked for n in nondiff_argnums)

    def differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
        made = jax.custom_jvp(function, nondiff_argnums=places)
        made.defjvp(checked, symbolic_zeros=symbolic_zeros)
        return made

    return _wrapped(primal, differentiable, rule.name, places, masked)


def with_vjp(
    primal: Callable[..., Any],
    forward: Rule,
    backward: Rule,
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
    *,
    masked: bool = False,
) -> Callable[..., Any]:
    """Return `primal` with a reverse-mode rule, as ``jax.custom_vjp(primal).defvjp(...)``.

    If `masked`, the first argument of `primal` is a mask, which masks the rule's callbacks too.
    """
    __tracebackhide__ = True
    _check_callable("defvjp", forward)
    _check_callable("defvjp", backward)
    checked = checked_vjp(forward, backward, nondiff_argnums)
    checked = _masked_vjp(*checked, nondiff_argnums) if masked else checked
    places = tuple(n + masked for n in nondiff_argnums)

    def differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
        made = jax.custom_vjp(function, nondiff_argnums=places)
        made.defvjp(*checked, symbolic_zeros=symbolic_zeros)
        return made

    return _wrapped(primal, differentiable, forward.name, places, masked)


def _masked_jvp(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule whose first primal is a mask, see `with_jvp`."""

    @functools.wraps(rule)
    def masked(*args: Any) -> tuple[Any, Any]:
        *fixed, (mask, *primals), (_, *tangents) = args
        primals = with_stand_ins(mask, tuple(primals))
        tangents = zero_elsewhere(mask, tuple(tangents))
        with masking(mask):
            return rule(*fixed, primals, tangents)

    return masked


def _masked_vjp(
    forward: Callable[..., Any], backward: Callable[..., Any], nondiff_argnums: Sequence[int]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return both functions of a rule for a first argument that is a mask, see `with_vjp`."""
    places = frozenset(nondiff_argnums)

    @functools.wraps(forward)
    def masked_forward(mask: Any, *args: Any) -> tuple[Any, Any]:
        mask = plain(mask)
        moving = iter(_stood_in(mask, [x for n, x in enumerate(args) if n not in places]))
        args = tuple(x if n in places else next(moving) for n, x in enumerate(args))
        with masking(mask):
            out, residuals = forward(*args)
        return out, (mask, residuals)

    @functools.wraps(backward)
    def masked_backward(*args: Any) -> Any:
        *fixed, (mask, residuals), cotangent = args
        with masking(mask):
            cotangents = backward(*fixed, residuals, cotangent)
        return (None, *zero_elsewhere(mask, tuple(cotangents)))

    return masked_forward, masked_backward


def _stood_in(mask: Any, args: Sequence[Any]) -> Any:
    """Apply `with_stand_ins` to arguments that may be flagged for differentiation."""

    def is_flagged(leaf: Any) -> bool:
        return isinstance(leaf, CustomVJPPrimal)

    values = with_stand_ins(mask, tree_map(plain, args, is_leaf=is_flagged))
    return tree_map(
        lambda leaf, x: dataclasses.replace(leaf, value=x) if is_flagged(leaf) else x,
        args,
        values,
        is_leaf=is_flagged,
    )


def _wrapped(
    primal: Callable[..., Any],
    differentiable: Callable[[Callable[..., Any]], Callable[..., Any]],
    name: str,
    nondiff_argnums: Sequence[int],
    masked: bool,
) -> Callable[..., Any]:
    """Return `primal` with the rule that `differentiable` adds.

    It raises a helpful TypeError for arguments that are not arrays.
    """
    shared = differentiable(primal)

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        for n, arg in enumerate(_positional(primal, args, kwargs)):
            if n not in nondiff_argnums and not all(map(is_array, tree_leaves(arg))):
                place = n - masked
                raise TypeError(
                    f"cannot call {name} with {arg!r} as argument {place}: it is not an array, and "
                    f"{name} has a derivative rule. Define the rule with nondiff_argnums=({place},"
                    "); it then gets this argument first."
                )
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
            f"cannot use {rule.function!r} as a derivative rule of {rule.name}: it is not a "
            f"function. Call {rule.name}.{method} as you would jax.custom_{method[3:]}'s."
        )
