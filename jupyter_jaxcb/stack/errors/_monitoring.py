"""Attach the cause to the ValueError of JAX's C++ fast path, on Python 3.12 and later.

From its second call on, a program without effects runs in C++ only, which raises ValueError
without going through any class of JAX's. Python's `sys.monitoring` still sees that exception. It is
enabled only between a failed host call and the error that JAX raises for it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

Intercept = Callable[[str], tuple[str, BaseException] | None]

_TOOLS = (4, 3)  # free tool ids: 0 to 2 and 5 are reserved for debuggers and the like
_ENOUGH = 10_000  # stop after this many other exceptions: the expected one was dropped

_lock = threading.Lock()
_tool: int | None = None
_left = 0


def watch(intercept: Intercept) -> None:
    """Pass the message of every ValueError that is raised to `intercept`, until `unwatch`."""
    global _tool, _left
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        return
    with _lock:
        _left = _ENOUGH
        if _tool is not None:
            return
        _tool = next((tool for tool in _TOOLS if monitoring.get_tool(tool) is None), None)
        if _tool is not None:
            monitoring.use_tool_id(_tool, "jupyter_jaxcb")
            monitoring.register_callback(_tool, monitoring.events.RAISE, _raised(intercept))
            monitoring.set_events(_tool, monitoring.events.RAISE)


def unwatch() -> None:
    """Stop monitoring exceptions."""
    global _tool
    with _lock:
        if _tool is not None:
            monitoring: Any = sys.monitoring  # type: ignore
            monitoring.set_events(_tool, 0)
            monitoring.register_callback(_tool, monitoring.events.RAISE, None)
            monitoring.free_tool_id(_tool)
            _tool = None


def _raised(intercept: Intercept) -> Callable[[Any, int, BaseException], None]:
    def raised(code: Any, instruction: int, error: BaseException) -> None:
        global _left
        _left -= 1
        if type(error) is ValueError and error.__cause__ is None:
            give_cause(error, intercept)
        if _left < 0:
            unwatch()

    return raised


def give_cause(error: BaseException, intercept: Intercept) -> None:
    """Give an `error` of JAX's C++ the message and cause that `intercept` returns, if any."""
    replacement = (
        intercept(error.args[0]) if error.args and isinstance(error.args[0], str) else None
    )
    if replacement is not None:
        error.args = (replacement[0], *error.args[1:])
        error.__cause__ = replacement[1]
