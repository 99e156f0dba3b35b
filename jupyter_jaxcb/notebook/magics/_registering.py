"""Turn the functions of a cell into callbacks, and with ``--jvp``, ``--vjp`` into their rules."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def by_magic(register: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap the decorator `register` so that its messages name the options of the magic."""

    def registering(function: Any) -> Any:
        __tracebackhide__ = True
        callback = register(function)
        callback.host.made_by = "magic"
        return callback

    return registering


class RuleOfTheCell:
    """Passes a rule to its callback as soon as the cell has defined all functions, in any order.

    Args:
        register: the decorator of the host function.
        method: the method that takes the rule, ``"defjvp"`` or ``"defvjp"``.
        count: number of functions of the rule.
    """

    def __init__(self, register: Callable[[Any], Any], method: str, count: int) -> None:
        self._register = register
        self._method = method
        self._count = count
        self._callback: Any = None
        self._rule: dict[int, Any] = {}

    def function(self, function: Any) -> Any:
        """Decorate the host function."""
        self._callback = self._register(function)
        self._join()
        return self._callback

    def rule(self, place: int, rule: Any) -> Any:
        """Decorate the first (0) or second (1) function of the rule."""
        self._rule[place] = rule
        self._join()
        return rule

    def _join(self) -> None:
        if self._callback is not None and len(self._rule) == self._count:
            getattr(self._callback, self._method)(*(self._rule[n] for n in range(self._count)))
