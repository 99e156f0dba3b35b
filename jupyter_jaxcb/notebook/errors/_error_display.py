"""Show a failed host function as the user's own exception, once."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any

from IPython.core.interactiveshell import InteractiveShell

from ...stack import (
    CallbackException,
    attribute_of,
    error_for_user,
    is_a,
    raise_interrupt,
    refused_frames,
)
from ._late_errors import LateErrors

# An eager debug callback raises the exception of its host function itself.
_CLASSES = (Exception, KeyboardInterrupt)

_RUN_CELL = InteractiveShell.run_cell_async.__code__  # compiles a cell; run_code runs it
SIGNAL_HANDLERS: set[CodeType] = set()  # of this package, hidden in tracebacks
LONGEST = 20_000  # characters shown of an error message


class ErrorDisplay:
    """While installed, IPython shows the host function's exception instead of JAX's error.

    Args:
        shell: IPython's shell.
        failed: called when code has failed, before its exception is shown.
    """

    def __init__(self, shell: InteractiveShell, failed: Callable[[], None]) -> None:
        self._shell = shell
        self._failed = failed
        self._exceptions_before = shell.custom_exceptions
        self._handler_before = vars(shell).get("CustomTB")
        self._handler: Any = None
        self._showtraceback: Any = None
        self._late = LateErrors(shell)

    def install(self) -> None:
        """Register with IPython; an existing handler keeps its exception classes."""
        self._late.install()
        others = self._exceptions_before
        ours = tuple(c for c in _CLASSES if c not in others)
        self._shell.set_custom_exc((*others, *ours), self._show)
        self._handler = vars(self._shell)["CustomTB"]
        # IPython shows what %run and callbacks of events raise without asking for a handler.
        self._shell.showtraceback = self._showtraceback = self._showing(self._shell.showtraceback)

    def remove(self) -> None:
        """Restore the previous handler, unless other code has registered one since."""
        self._late.remove()
        if vars(self._shell).get("showtraceback") is self._showtraceback is not None:
            del self._shell.showtraceback
        if self._handler is None or vars(self._shell).get("CustomTB") is not self._handler:
            return
        self._shell.custom_exceptions = self._exceptions_before
        if self._handler_before is None:
            vars(self._shell).pop("CustomTB")
        else:
            self._shell.CustomTB = self._handler_before
        self._handler = None

    def show(self, error: BaseException) -> None:
        """Show `error` as a failing cell would."""
        self._show(self._shell, type(error), error, attribute_of(error, "__traceback__"))

    def _showing(self, before: Callable[..., None]) -> Callable[..., None]:
        """Return `before`, but for the exception that is handled now, if a host call failed."""

        @functools.wraps(before)
        def showtraceback(exc_tuple: Any = None, *args: Any, **options: Any) -> None:
            etype, error, tb = sys.exc_info() if exc_tuple is None else (None, None, None)
            whole = not options.get("exception_only")
            is_error = error is not None and is_a(error, Exception)
            if whole and is_error and _failed_call(error, tb) is not None:
                self._show(self._shell, etype, error, tb)
            else:
                before(exc_tuple, *args, **options)

        return showtraceback

    def _show(
        self, shell: InteractiveShell, etype: Any, value: Any, tb: Any, tb_offset: Any = None
    ) -> None:
        self._failed()
        seen = _failed_call(value, tb)
        if seen is not None:
            self._late.mark(seen[0])
            original, frames = _showable(seen[0]), seen[1]
            shell.showtraceback((type(original), original, frames), tb_offset=0)
        elif self._handler_before is not None and isinstance(value, self._exceptions_before):
            self._handler_before(etype, value, tb, tb_offset=tb_offset)
        elif tb is not None and tb.tb_frame.f_code is _RUN_CELL:
            shell.showsyntaxerror()  # the cell could not be compiled
        else:
            if isinstance(value, KeyboardInterrupt):
                tb = _without_handler(tb)
            shell.showtraceback(
                (etype, value, refused_frames(tb)), tb_offset, running_compiled_code=True
            )


def _failed_call(error: Any, tb: Any) -> tuple[BaseException, TracebackType | None] | None:
    """As `error_for_user`; the text of a CallbackException repeats all of its cause."""
    return error_for_user(error.__cause__ if isinstance(error, CallbackException) else error, tb)


def _without_handler(tb: TracebackType | None) -> TracebackType | None:
    """Remove the frame of the signal handler: IPython always shows the last frame."""
    if tb is None or tb.tb_frame.f_code in SIGNAL_HANDLERS:
        return None
    return TracebackType(_without_handler(tb.tb_next), tb.tb_frame, tb.tb_lasti, tb.tb_lineno)


def _showable(error: BaseException) -> BaseException:
    """Return `error`, or a copy with a shorter message that a kernel can send and save."""
    try:
        message = str(error)
    except BaseException as broken:
        raise_interrupt(broken)
        message = f"<its message raised {type(broken).__name__}>"
    else:
        sent = message.encode("utf-8", "replace").decode("utf-8")
        if len(message) <= LONGEST and sent == message and _is_readable(error):
            return error
        more = f"… ({len(message):,} characters)" if len(message) > LONGEST else ""
        message = sent[:LONGEST] + more
    kind = type(type(error).__name__, (Exception,), {"__module__": type(error).__module__})
    shown = kind(message)
    for name in ("__cause__", "__context__", "__suppress_context__"):
        setattr(shown, name, attribute_of(error, name))
    for note in attribute_of(error, "__dict__").get("__notes__", ()):
        shown.add_note(note)
    return shown


def _is_readable(error: BaseException) -> bool:
    """Return whether the attributes that IPython reads can be read."""
    try:
        for name in ("__class__", "__dict__", "__cause__", "__context__", "__traceback__"):
            getattr(error, name)
    except BaseException as broken:  # of its class
        raise_interrupt(broken)
        return False
    return True
