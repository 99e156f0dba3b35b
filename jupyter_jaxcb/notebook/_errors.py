"""A failed host function is shown as the user's own exception, once."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import jax
from IPython.core.interactiveshell import InteractiveShell

from ..stack import host_error, is_user_code
from ._stop import without_handler

# The classes JAX raises for a failed host function: its own, and ValueError from its C++ fast path;
# and what an interrupted one becomes.
_CLASSES = (jax.errors.JaxRuntimeError, ValueError, KeyboardInterrupt)


class ErrorDisplay:
    """While installed, IPython shows the exception of the host function, not JAX's of it."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._exceptions_before = shell.custom_exceptions
        self._handler_before = vars(shell).get("CustomTB")
        self._handler: Any = None

    def install(self) -> None:
        """Registers with IPython; a handler that was there keeps the classes it had."""
        others = self._exceptions_before
        ours = tuple(c for c in _CLASSES if c not in others)
        self._shell.set_custom_exc((*others, *ours), self._show)
        self._handler = vars(self._shell)["CustomTB"]

    def remove(self) -> None:
        """Puts back what was there before, unless somebody else has registered since."""
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
        original = host_error(value, chained=False) or _interrupted(value)
        if original is not None:
            frames = _user_frames(original.__traceback__)
            if original is not value:  # what led to the call, then the host function's own
                frames = _user_frames(tb, frames)
            shell.showtraceback((type(original), original, frames), tb_offset=0)
        elif self._handler_before is not None and isinstance(value, self._exceptions_before):
            self._handler_before(etype, value, tb, tb_offset=tb_offset)
        else:
            if isinstance(value, KeyboardInterrupt):
                tb = without_handler(tb)
            shell.showtraceback((etype, value, tb), tb_offset, running_compiled_code=True)


def _interrupted(value: BaseException) -> BaseException | None:
    """The KeyboardInterrupt of a host function that `value` was raised for."""
    if not isinstance(value, KeyboardInterrupt) or value.__context__ is None:
        return None
    original = host_error(value.__context__)
    return original if isinstance(original, KeyboardInterrupt) else None


def _user_frames(
    tb: TracebackType | None, after: TracebackType | None = None
) -> TracebackType | None:
    """The frames of `tb` in the user's code, then those of `after`."""
    frames = []
    while tb is not None:
        if is_user_code(tb.tb_frame.f_code.co_filename):
            frames.append(tb)
        tb = tb.tb_next
    for own in reversed(frames):
        after = TracebackType(after, own.tb_frame, own.tb_lasti, own.tb_lineno)
    return after
