"""Hook into the errors JAX raises for failed programs, and drop the tokens these leave behind.

Callbacks work without this module. If a later JAX lacks one of its pieces, errors have no cause, or
make later ordered calls fail as they do with JAX's own callbacks.
"""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Annotated, Any

import jax

from ._private import optional_module
from ._required import runtime_tokens
from ._runs import Executable

_pjit = optional_module("jax._src.pjit")
_Run = Annotated[Any, "jax._src.interpreters.pxla.ExecuteReplicated"]

# Maps the message of an error to its new message and its cause; None if the error is not ours.
Intercept = Callable[[str], tuple[str, BaseException] | None]

_PATIENCE_SECONDS = 0.2
TOKEN_CHECK_THREAD = "jupyter_jaxcb-tokens"  # threads of this name do not report errors to users
_KIND = jax.errors.JaxRuntimeError


def intercept_errors(intercept: Intercept) -> Callable[[], None]:
    """Pass every JaxRuntimeError to `intercept` while it is created, on the thread that raises it.

    C++ creates these errors by calling the class, so its ``__init__`` sees all of them, whether
    they come from a call, from ``block_until_ready`` or from a barrier. If `intercept` raises, its
    exception is raised instead.

    Returns:
        A function that restores the class.
    """
    original: Any = _KIND.__init__
    inherited = "__init__" not in vars(_KIND)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
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

    try:
        _KIND.__init__ = init
    except (TypeError, AttributeError):  # an immutable class
        return lambda: None
    return undo


def stay_in_python() -> Callable[[], None] | None:
    """Keep programs with host callbacks off JAX's C++ fast path, which raises ValueError.

    Returns:
        A function that restores JAX; None if this version of JAX is not supported.
    """
    pjit: Any = _pjit
    original = getattr(pjit, "_get_fastpath_data", None)
    if original is None:
        return None

    @functools.wraps(original)
    def data(executable: Executable, *args: Any, **kwargs: Any) -> Any:
        run: _Run = getattr(executable, "unsafe_call", None)
        if getattr(run, "has_host_callbacks", False):
            return None
        return original(executable, *args, **kwargs)

    def undo() -> None:
        if pjit._get_fastpath_data is data:
            pjit._get_fastpath_data = original

    pjit._get_fastpath_data = data
    return undo


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

    def look(token: Any) -> None:
        try:
            token.block_until_ready()  # the only way to find out whether it failed
        except BaseException as error:
            if is_raised(str(error)):
                failed.add(id(token))

    tokens = [token for copy in copies for token in copy.values()]
    threads = [
        threading.Thread(target=look, args=(token,), name=TOKEN_CHECK_THREAD, daemon=True)
        for token in tokens
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _PATIENCE_SECONDS  # a token not done by then has not failed
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    runtime_tokens.current_tokens, runtime_tokens.output_runtime_tokens = (
        {key: token for key, token in copy.items() if id(token) not in failed} for copy in copies
    )
