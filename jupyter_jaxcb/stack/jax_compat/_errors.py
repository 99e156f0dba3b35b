"""What JAX raises for a program that failed: its class, and the tokens that such a program leaves.

Nothing in here is needed for callbacks to work: where a piece is gone in a later JAX, an error has
no cause, or poisons later ordered calls as it does with JAX's own callbacks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import jax

try:
    from jax._src import pjit as _pjit
except ImportError:
    _pjit: Any = None

from ._required import runtime_tokens

# From the message of an error to the message it is to have, and its cause; None: not one of ours.
Intercept = Callable[[str], tuple[str, BaseException] | None]

_PATIENCE_SECONDS = 0.2
TOKEN_CHECK_THREAD = "jupyter_jaxcb looks at tokens"  # name of threads that see errors for nobody
_KIND = jax.errors.JaxRuntimeError


def intercept_errors(intercept: Intercept) -> Callable[[], None]:
    """Shows `intercept` every JaxRuntimeError while it is made, in the thread that sees it raised.

    The class is C++'s and makes its errors by calling the class, so its ``__init__`` is where
    Python sees them, whether they come from a call, from ``block_until_ready`` or a barrier. What
    `intercept` raises is raised instead.

    Returns:
        A function that puts the class back as it was.
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
    except (TypeError, AttributeError):  # a class that does not change
        return lambda: None
    return undo


def stay_in_python() -> Callable[[], None] | None:
    """Keeps programs with host callbacks off JAX's C++ dispatch, which raises ValueError.

    Returns:
        A function that puts JAX back as it was; None where JAX does not decide it here.
    """
    pjit: Any = _pjit
    original = getattr(pjit, "_get_fastpath_data", None)
    if original is None:
        return None

    def data(executable: Any, *args: Any, **kwargs: Any) -> Any:
        run = getattr(executable, "unsafe_call", None)
        if getattr(run, "has_host_callbacks", False):
            return None
        return original(executable, *args, **kwargs)

    def undo() -> None:
        if pjit._get_fastpath_data is data:
            pjit._get_fastpath_data = original

    pjit._get_fastpath_data = data
    return undo


def forget_failed_tokens(is_seen: Callable[[str], bool]) -> None:
    """Drops those of this thread's runtime tokens whose program has failed with what was seen.

    Each of them would raise that error again, in the next program with the same ordered effect and
    in every barrier. The tokens of programs that still run are kept: later ones wait for them; and
    those of programs whose error nobody has seen.

    Args:
        is_seen: whether the error with this message was.
    """
    held = (runtime_tokens.current_tokens, runtime_tokens.output_runtime_tokens)
    if not any(held):
        return
    copies = [dict(tokens) for tokens in held]
    failed: set[int] = set()

    def look(token: Any) -> None:
        try:
            token.block_until_ready()  # the only way to see that it has failed
        except BaseException as error:
            if is_seen(str(error)):
                failed.add(id(token))

    tokens = [token for copy in copies for token in copy.values()]
    threads = [
        threading.Thread(target=look, args=(token,), name=TOKEN_CHECK_THREAD, daemon=True)
        for token in tokens
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + _PATIENCE_SECONDS  # what is not done by then has not failed
    for thread in threads:
        thread.join(max(deadline - time.monotonic(), 0))
    runtime_tokens.current_tokens, runtime_tokens.output_runtime_tokens = (
        {key: token for key, token in copy.items() if id(token) not in failed} for copy in copies
    )
