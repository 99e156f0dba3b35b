"""Show uncaught errors of host functions as the user's own exception."""

from __future__ import annotations

import contextlib
import sys
import threading
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

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
    print(f"{heading}\n{_formatted(error, tb)}", file=sys.stderr, end="", flush=True)


def _formatted(error: BaseException, tb: TracebackType | None) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, tb))
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
