"""The ValueError that JAX's C++ raises: on Python 3.12 and later it gets its cause as well.

A program without effects is run by C++ alone from its second call on, and no class of JAX's is
made there. What does see its error is Python's own monitoring, which is told of every exception
that is raised. It is on from a failed host call until that has been seen, and costs nothing else.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

Meet = Callable[[str], tuple[str, BaseException] | None]

_TOOLS = (4, 3)  # that nobody has a claim to: 0 to 2 and 5 are for debuggers and the like
_ENOUGH = 10_000  # exceptions seen in vain: the one waited for was dropped

_lock = threading.Lock()
_tool: int | None = None
_left = 0


def watch(meet: Meet) -> None:
    """Shows `meet` the message of every ValueError that is raised, until `unwatch`."""
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
            monitoring.register_callback(_tool, monitoring.events.RAISE, _raised(meet))
            monitoring.set_events(_tool, monitoring.events.RAISE)


def unwatch() -> None:
    """Looks at no exception any more."""
    global _tool
    with _lock:
        if _tool is not None:
            monitoring: Any = sys.monitoring  # type: ignore
            monitoring.set_events(_tool, 0)
            monitoring.register_callback(_tool, monitoring.events.RAISE, None)
            monitoring.free_tool_id(_tool)
            _tool = None


def _raised(meet: Meet) -> Callable[[Any, int, BaseException], None]:
    def raised(code: Any, instruction: int, error: BaseException) -> None:
        global _left
        _left -= 1
        if type(error) is ValueError and error.__cause__ is None:
            give_cause(error, meet)
        if _left < 0:
            unwatch()

    return raised


def give_cause(error: BaseException, meet: Meet) -> None:
    """Gives an `error` of JAX's C++ the message and the cause that `meet` knows, if it does."""
    met = meet(error.args[0]) if error.args and isinstance(error.args[0], str) else None
    if met is not None:
        error.args = (met[0], *error.args[1:])
        error.__cause__ = met[1]
