"""Find branches and loops whose condition is a constant.

Only single equations are examined: ``cond(True, ...)``, and a ``while`` whose condition compares
the initial value of its carry with a constant. XLA finds many more.
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
    """Return the index of the branch that a ``cond`` always takes; None if it depends on data."""
    index = _constant(cond.invars[0], {})
    return None if index is None else int(np.clip(index, 0, len(cond.params["branches"]) - 1))


def enters(loop: Any) -> bool | None:
    """Return whether every run enters a ``while``; None if that depends on data."""
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
    """Return the constant scalar that `operand` is; None if it is not constant."""
    if not hasattr(operand, "val"):
        operand = begins_with.get(operand)
    value = getattr(operand, "val", None)
    return None if value is None or np.ndim(value) else value
