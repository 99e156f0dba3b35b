"""Derivative rules of masked calls: they are masked, too, and nothing moves elsewhere."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

from jax.custom_derivatives import CustomVJPPrimal
from jax.tree_util import tree_map

from ..derivatives import Gate, plain
from ._mask import masking, zero_elsewhere
from ._stand_ins import with_stand_ins


def _jvp(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule whose first primal is a mask, which masks its callbacks too."""

    @functools.wraps(rule)
    def masked(*args: Any) -> tuple[Any, Any]:
        *fixed, (mask, *primals), (_, *tangents) = args
        primals = with_stand_ins(mask, tuple(primals))
        tangents = zero_elsewhere(mask, tuple(tangents))
        with masking(mask):
            return rule(*fixed, primals, tangents)

    return masked


def _vjp(
    forward: Callable[..., Any], backward: Callable[..., Any], nondiff_argnums: Sequence[int]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """As `_jvp`, for both functions of a reverse-mode rule."""
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


def _tangents(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return `rule` with tangents that are zero where the first primal, a mask, is false."""
    return lambda primals, tangents: rule(primals, zero_elsewhere(primals[0], tangents))


MASK = Gate(_jvp, _vjp, _tangents)
