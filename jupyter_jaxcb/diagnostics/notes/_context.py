"""Whether the code that JAX traces now is watched."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax

# The options of the block; None outside. JAX's caches depend on it, so that what was traced before
# is traced again, and what is traced inside is not used outside.
key: Any = jax.make_user_context(None)


class _Now(threading.local):
    paused: bool = False


_now = _Now()


def is_watching() -> bool:
    """Return whether this thread traces the user's code inside a block that watches."""
    return key.value is not None and not _now.paused


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Do not watch the operations of this package."""
    before, _now.paused = _now.paused, True
    try:
        yield
    finally:
        _now.paused = before


def unwatched(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, which runs, and what it returns, as outside of the block."""

    @functools.wraps(function)
    def outside(*args: Any, **kw: Any) -> Any:
        with key(None):
            out = function(*args, **kw)
        return unwatched(out) if callable(out) else out

    return outside
