"""Hooks in Python: they show uncaught errors as the user's exception, and give errors their cause.

From its second call on, a program without effects runs in C++ only, which raises ValueError
without going through any class of JAX's. On Python 3.12 and later, `sys.monitoring` still sees that
exception. It is enabled only between a failed host call and the error that JAX raises for it, and
only on a Python where that was tried.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ...recording import visible
from ..trace import IS_TRIED
from ._error_text import describe, raise_interrupt
from ._store import error_for_user


def show_uncaught() -> Callable[[], None]:
    """Install excepthooks for scripts and threads, unless others are installed already.

    IPython needs none for its cells. It would also put ours back at the end of the cell that
    removed it.

    Returns:
        A function that removes the hooks.
    """
    undo = contextlib.ExitStack()
    if sys.excepthook is sys.__excepthook__ and not _is_in_ipython():
        sys.excepthook = _excepthook
        undo.callback(_remove_excepthook)
    if threading.excepthook is threading.__excepthook__:
        threading.excepthook = _thread_excepthook
        undo.callback(_remove_thread_excepthook)
    return undo.close


def show(error: BaseException, tb: TracebackType | None, heading: str) -> None:
    """Write `heading` and the traceback to stderr in one piece."""
    print(f"{visible(heading)}\n{_formatted(error, tb)}", file=sys.stderr, end="", flush=True)


def _formatted(error: BaseException, tb: TracebackType | None) -> str:
    try:
        lines = traceback.format_exception(type(error), error, tb)
        return "".join(visible(line) if line.startswith("  File ") else line for line in lines)
    except BaseException as broken:  # its class forbids reading attributes
        raise_interrupt(broken)
        return f"{''.join(traceback.format_tb(tb))}{describe(error)}\n"


def _is_in_ipython() -> bool:
    ipython: Any = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def _excepthook(kind: type[BaseException], error: BaseException, tb: TracebackType | None) -> None:
    seen = error_for_user(error, tb)
    if seen is None:
        sys.__excepthook__(kind, error, tb)
    else:
        print(_formatted(*seen), file=sys.stderr, end="", flush=True)


def _thread_excepthook(args: threading.ExceptHookArgs) -> None:
    error = args.exc_value
    seen = None if error is None else error_for_user(error, args.exc_traceback)
    if seen is None or args.exc_type is SystemExit:
        threading.__excepthook__(args)
    else:
        name = args.thread.name if args.thread else threading.get_ident()
        show(*seen, f"Exception in thread {name}:")


def _remove_excepthook() -> None:
    if sys.excepthook is _excepthook:
        sys.excepthook = sys.__excepthook__


def _remove_thread_excepthook() -> None:
    if threading.excepthook is _thread_excepthook:
        threading.excepthook = threading.__excepthook__


Intercept = Callable[[str], tuple[str, BaseException] | None]

_TOOLS = (4, 3)  # free tool ids: 0 to 2 and 5 are reserved for debuggers and the like
_ENOUGH = 10_000  # stop after this many other exceptions: the expected one was dropped

_lock = threading.Lock()
_tool: int | None = None
_left = 0


def watch_errors(intercept: Intercept) -> None:
    """Pass the message of each raised ValueError to `intercept`, until `unwatch_errors`."""
    global _tool, _left
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None or not IS_TRIED:
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


def unwatch_errors() -> None:
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
            unwatch_errors()

    return raised


def give_cause(error: BaseException, intercept: Intercept) -> None:
    """Give an `error` of JAX's C++ the message and cause that `intercept` returns, if any."""
    replacement = (
        intercept(error.args[0]) if error.args and isinstance(error.args[0], str) else None
    )
    if replacement is not None:
        error.args = (replacement[0], *error.args[1:])
        error.__cause__ = replacement[1]
