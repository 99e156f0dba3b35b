"""A failed host function is shown as the user's own exception, once."""

from __future__ import annotations

from types import CodeType, TracebackType
from typing import Any

import jax
from IPython.core.interactiveshell import InteractiveShell

from ...stack import CallbackException, error_for_user, refused_frames
from ._late_errors import LateErrors

# What is raised for a failed host function: JAX's class, ValueError by its C++, Ctrl-C itself, and
# the class of `host_callback.barrier_wait`. The other two are what we refuse things with, as is
# ValueError.
_CLASSES = (
    jax.errors.JaxRuntimeError,
    ValueError,
    KeyboardInterrupt,
    CallbackException,
    TypeError,
    NotImplementedError,
)

SIGNAL_HANDLERS: set[CodeType] = set()  # of ours, to be left out of tracebacks
LONGEST = 20_000  # characters of a message that a notebook is to hold


class ErrorDisplay:
    """While installed, IPython shows the exception of the host function, not JAX's of it."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._exceptions_before = shell.custom_exceptions
        self._handler_before = vars(shell).get("CustomTB")
        self._handler: Any = None
        self._late = LateErrors(shell)

    def install(self) -> None:
        """Registers with IPython; a handler that was there keeps the classes it had."""
        self._late.install()
        others = self._exceptions_before
        ours = tuple(c for c in _CLASSES if c not in others)
        self._shell.set_custom_exc((*others, *ours), self._show)
        self._handler = vars(self._shell)["CustomTB"]

    def remove(self) -> None:
        """Puts back what was there before, unless somebody else has registered since."""
        self._late.remove()
        if self._handler is None or vars(self._shell).get("CustomTB") is not self._handler:
            return
        self._shell.custom_exceptions = self._exceptions_before
        if self._handler_before is None:
            vars(self._shell).pop("CustomTB")
        else:
            self._shell.CustomTB = self._handler_before
        self._handler = None

    def show(self, error: BaseException) -> None:
        """Shows `error` as a failing cell would."""
        self._show(self._shell, type(error), error, error.__traceback__)

    def _show(
        self, shell: InteractiveShell, etype: Any, value: Any, tb: Any, tb_offset: Any = None
    ) -> None:
        # The text of a CallbackException repeats all of its cause.
        told = value.__cause__ if isinstance(value, CallbackException) else value
        seen = error_for_user(told, tb)
        if seen is not None:
            self._late.mark(seen[0])
            original, frames = _showable(seen[0]), seen[1]
            shell.showtraceback((type(original), original, frames), tb_offset=0)
        elif self._handler_before is not None and isinstance(value, self._exceptions_before):
            self._handler_before(etype, value, tb, tb_offset=tb_offset)
        else:
            if isinstance(value, KeyboardInterrupt):
                tb = _without_handler(tb)
            shell.showtraceback(
                (etype, value, refused_frames(tb)), tb_offset, running_compiled_code=True
            )


def _without_handler(tb: TracebackType | None) -> TracebackType | None:
    """`tb` as it would be without our handler: IPython shows the last frame, whoever it is."""
    if tb is None or tb.tb_frame.f_code in SIGNAL_HANDLERS:
        return None
    return TracebackType(_without_handler(tb.tb_next), tb.tb_frame, tb.tb_lasti, tb.tb_lineno)


def _showable(error: BaseException) -> BaseException:
    """`error`, or what stands for one that a kernel cannot send, or a notebook cannot hold."""
    try:
        message = str(error)
    except Exception as broken:
        message = f"<its message raised {type(broken).__name__}>"
    else:
        sent = message.encode("utf-8", "replace").decode("utf-8")
        if len(message) <= LONGEST and sent == message:
            return error
        more = f"… ({len(message):,} characters)" if len(message) > LONGEST else ""
        message = sent[:LONGEST] + more
    kind = type(type(error).__name__, (Exception,), {"__module__": type(error).__module__})
    shown = kind(message)
    shown.__cause__, shown.__context__ = error.__cause__, error.__context__
    shown.__suppress_context__ = error.__suppress_context__
    for note in getattr(error, "__notes__", ()):
        shown.add_note(note)
    return shown
