"""Derivatives of linear callbacks that are called where a mask is true."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..masked import MASK, with_stand_ins


def stood_in(operands: Sequence[Any], behind: Sequence[Any]) -> list[Any]:
    """Return the operands of a call, with values to compute with where its mask is false.

    Args:
        operands: the operands.
        behind: those behind the arguments: the mask, if there is one.
    """
    if not behind:
        return [*operands]
    (mask,) = behind
    return [*with_stand_ins(mask, tuple(operands[:-1])), mask]


def applied(
    rule: Callable[..., Any],
    behind: Sequence[Any],
    fixed: Sequence[Any],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
) -> Any:
    """Return what a forward-mode rule returns, masked as the call is.

    Args:
        rule: the rule.
        behind: the operands behind the arguments: the mask, if there is one.
        fixed: the arguments that the rule gets first.
        primals: the other ones.
        tangents: the tangents of `primals`.
    """
    if not behind:
        return rule(*fixed, primals, tangents)
    (mask,) = behind
    return MASK.jvp(rule)(*fixed, (mask, *primals), (None, *tangents))
