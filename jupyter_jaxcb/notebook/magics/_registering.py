"""Functions of the cell become callbacks, or with ``--jvp`` and ``--vjp`` derivatives of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def by_magic(register: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`register`, a decorator, for functions of a cell: messages say what to type in its line."""

    def registering(function: Any) -> Any:
        __tracebackhide__ = True
        callback = register(function)
        callback.host.made_by = "magic"
        return callback

    return registering


class RuleOfTheCell:
    """Joins a callback and its rule as soon as the cell has defined all of it, in any order.

    Args:
        register: the decorator of the host function.
        method: of the callback that takes the rule: ``"defjvp"``, ``"defvjp"``.
        count: of the functions that it takes.
    """

    def __init__(self, register: Callable[[Any], Any], method: str, count: int) -> None:
        self._register = register
        self._method = method
        self._count = count
        self._callback: Any = None
        self._rule: dict[int, Any] = {}

    def function(self, function: Any) -> Any:
        """Decorates the host function."""
        self._callback = self._register(function)
        self._join()
        return self._callback

    def rule(self, place: int, rule: Any) -> Any:
        """Decorates a function of the rule, the first (0) or the second (1) that the line names."""
        self._rule[place] = rule
        self._join()
        return rule

    def _join(self) -> None:
        if self._callback is not None and len(self._rule) == self._count:
            getattr(self._callback, self._method)(*(self._rule[n] for n in range(self._count)))
