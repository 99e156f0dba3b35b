"""Turn the functions of a cell into callbacks, and with ``--jvp`` and the like into their rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class RulesOfTheCell:
    """Passes rules to their callback as soon as the cell has defined their functions, in any order.

    Args:
        register: the decorator of the host function.
        rules: for each rule the method that takes it (``"defjvp"``), and the number of its
            functions.
    """

    def __init__(self, register: Callable[[Any], Any], rules: Sequence[tuple[str, int]]) -> None:
        self._register = register
        self._callback: Any = None
        self._waiting: dict[str, int] = dict(rules)
        self._functions: dict[str, dict[int, Any]] = {method: {} for method, _ in rules}

    def function(self, function: Any) -> Any:
        """Decorate the host function."""
        self._callback = self._register(function)
        self._join()
        return self._callback

    def rule(self, method: str, place: int, function: Any) -> Any:
        """Decorate the first (0) or second (1) function of a rule."""
        self._functions[method][place] = function
        self._join()
        return function

    def _join(self) -> None:
        if self._callback is None:
            return
        for method, count in [*self._waiting.items()]:
            functions = self._functions[method]
            if len(functions) == count:
                del self._waiting[method]
                getattr(self._callback, method)(*(functions[n] for n in range(count)))
