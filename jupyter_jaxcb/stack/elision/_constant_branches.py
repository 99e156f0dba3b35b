"""What a program says of its branches and loops by itself: conditions that are constants.

XLA finds out far more. This module looks at single equations: ``cond(True, ...)``, and a while
whose condition compares the number that its carry begins with to another.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

_COMPARISONS = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "eq": operator.eq, "ne": operator.ne,
}  # fmt: skip


def index_of(cond: Any) -> int | None:
    """The branch that a ``cond`` takes in every run; None: depends on data."""
    index = _constant(cond.invars[0], {})
    return None if index is None else int(np.clip(index, 0, len(cond.params["branches"]) - 1))


def enters(loop: Any) -> bool | None:
    """Whether every run enters a ``while``; None: depends on data."""
    predicate, counts = loop.params["cond_jaxpr"].jaxpr, loop.params
    own, body = counts["cond_nconsts"], counts["body_nconsts"]
    operands = [*loop.invars[:own], *loop.invars[own + body :]]
    begins_with = dict(zip(predicate.invars, operands, strict=True))
    if len(predicate.eqns) != 1 or predicate.eqns[0].primitive.name not in _COMPARISONS:
        return None
    (compared,) = predicate.eqns
    if compared.outvars != predicate.outvars:
        return None
    left, right = (_constant(operand, begins_with) for operand in compared.invars)
    if left is None or right is None:
        return None
    return bool(_COMPARISONS[compared.primitive.name](left, right))


def _constant(operand: Any, begins_with: dict[Any, Any]) -> Any:
    """The number that stands in the place of `operand`; None if there is none."""
    if not hasattr(operand, "val"):
        operand = begins_with.get(operand)
    value = getattr(operand, "val", None)
    return None if value is None or np.ndim(value) else value
