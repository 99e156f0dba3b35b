"""Errors that JAX raises for failed programs, the tokens that these leave behind, and what runs."""

from __future__ import annotations

import functools
import os
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import jax

from ._calls import runtime_tokens
from ._runs import Executable, is_done, noted_runs
from ._subjects import Changes, code_of, is_on, module

# Maps the message of an error to its new message and its cause; None if the error is not ours.
Intercept = Callable[[str], tuple[str, BaseException] | None]

_PATIENCE_SECONDS = 0.2
TOKEN_CHECK_THREAD = "jupyter_jaxcb-tokens"  # threads of this name do not report errors to users
_in_cpp: list[threading.Event] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_cpp.clear)  # the child has none of these threads
_KIND: Any = jax.errors.JaxRuntimeError


def intercept_errors(intercept: Intercept) -> Callable[[], None]:
    """Pass every JaxRuntimeError to `intercept` while it is created, on the thread that raises it.

    C++ creates these errors by calling the class, so its ``__init__`` sees all of them, whether
    they come from a call, from ``block_until_ready`` or from a barrier. If `intercept` raises, its
    exception is raised instead.

    Returns:
        A function that restores the class.
    """
    original, inherited = _KIND.__init__, "__init__" not in vars(_KIND)

    # An interrupt may come before the first line, so the frame is hidden by a parameter.
    def init(self: Any, *args: Any, __tracebackhide__: bool = True, **kwargs: Any) -> None:
        replacement = intercept(args[0]) if args and isinstance(args[0], str) else None
        if replacement is None:
            original(self, *args, **kwargs)
            return
        original(self, replacement[0], *args[1:], **kwargs)
        self.__cause__ = replacement[1]

    def undo() -> None:
        if vars(_KIND).get("__init__") is not init:
            return
        if inherited:
            del _KIND.__init__
        else:
            _KIND.__init__ = original

    _KIND.__init__ = init
    return undo


def stay_in_python() -> Callable[[], None]:
    """Keep programs with host callbacks off JAX's C++ fast path, which raises ValueError.

    Returns:
        A function that restores JAX.
    """
    pjit = module("pjit")
    original = pjit._get_fastpath_data

    @functools.wraps(original)
    def data(executable: Executable, *args: Any, **kwargs: Any) -> Any:
        run = getattr(executable, "unsafe_call", None)  # JAX may pass no executable
        if getattr(run, "has_host_callbacks", False):
            return None
        return original(executable, *args, **kwargs)

    changes = Changes()
    changes.set(pjit, "_get_fastpath_data", data)
    return changes.revert


def forget_failed_tokens(is_raised: Callable[[str], bool]) -> None:
    """Drop this thread's runtime tokens of failed programs whose error has been raised.

    Such a token would raise its error again in the next program with the same ordered effect and in
    every barrier. Tokens of running programs are kept, because later programs wait for them, and so
    are tokens of failed programs whose error has not been raised yet.

    Args:
        is_raised: returns whether the error with this message has been raised.
    """
    held = (runtime_tokens.current_tokens, runtime_tokens.output_runtime_tokens)
    if not any(held):
        return
    copies = [dict(tokens) for tokens in held]
    failed: set[int] = set()

    def look(token: Any, done: threading.Event) -> None:
        try:
            token.block_until_ready()  # the only way to find out whether it failed
        except BaseException as error:
            if is_raised(str(error)):
                failed.add(id(token))
        done.set()

    looks = [(token, waits_in_cpp()) for copy in copies for token in copy.values()]
    for arguments in looks:
        threading.Thread(target=look, args=arguments, name=TOKEN_CHECK_THREAD, daemon=True).start()
    deadline = time.monotonic() + _PATIENCE_SECONDS  # a token not done by then has not failed
    for _, done in looks:
        done.wait(max(deadline - time.monotonic(), 0))
    runtime_tokens.current_tokens, runtime_tokens.output_runtime_tokens = (
        {key: token for key, token in copy.items() if id(token) not in failed} for copy in copies
    )


def waits_in_cpp() -> threading.Event:
    """Return an event that a new daemon thread sets when it no longer waits for a token in C++.

    A thread that comes back from C++ after the end of Python aborts the process.
    """
    _in_cpp[:] = [done for done in _in_cpp if not done.is_set()]
    done = threading.Event()
    _in_cpp.append(done)
    return done


def leave_cpp(seconds: float) -> None:
    """Wait at most `seconds` for the threads of `waits_in_cpp`."""
    deadline = time.monotonic() + seconds
    for done in _in_cpp:
        done.wait(max(deadline - time.monotonic(), 0))


def is_in_run(frame: FrameType | None) -> bool:
    """Return whether a thread is in the run of a program at `frame`; False if it is in C++ only.

    Programs with host callbacks are run from Python. False, too, while interrupts are off.
    """
    run = code_of("interpreters.pxla", "ExecuteReplicated.__call__") if is_on("interrupts") else 0
    while frame is not None and frame.f_code is not run:
        frame = frame.f_back
    return frame is not None


def unfinished_arrays() -> list[Any]:
    """Return all live arrays that are still being computed, and ordered tokens, which hold arrays.

    Includes an array of each noted run, even if the user has dropped its results; no tokens while
    interrupts are off.
    """
    tokens = runtime_tokens.current_tokens.values() if is_on("interrupts") else ()
    ordered = [token._buf for token in tokens if hasattr(token._buf, "is_ready")]
    return [x for x in (*jax.live_arrays(), *noted_runs, *ordered) if not is_done(x)]


def unfinished_tokens() -> list[Any]:
    """Return the tokens of programs with unordered effects, which can only be waited for."""
    return list(runtime_tokens.output_runtime_tokens.values())
