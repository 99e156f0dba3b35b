"""``--jvp``: a function of the cell becomes the derivative rule of the registered one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class RuleOfTheCell:
    """Joins a callback and its rule as soon as the cell has defined both, in either order."""

    def __init__(self, register: Callable[[Any], Any]) -> None:
        self._register = register
        self._callback: Any = None
        self._rule: Any = None

    def function(self, function: Any) -> Any:
        """Decorates the host function."""
        self._callback = self._register(function)
        self._join()
        return self._callback

    def rule(self, rule: Any) -> Any:
        """Decorates the rule."""
        self._rule = rule
        self._join()
        return rule

    def _join(self) -> None:
        if self._callback is not None and self._rule is not None:
            self._callback.defjvp(self._rule)
