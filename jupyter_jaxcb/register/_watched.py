"""Report the calls of registered callbacks, with their arguments, to the watcher of a thread."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any


class _Watched(threading.local):
    """The watcher of this thread."""

    report: Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None] | None = None


watched = _Watched()


@contextlib.contextmanager
def watching_calls(
    report: Callable[[Any, tuple[Any, ...], dict[str, Any], Any], None],
) -> Iterator[None]:
    """Report each call of a registered callback in the block, on this thread.

    Args:
        report: ``report(callback, args, kwargs, mask)``; `mask` is True for calls without a mask.
    """
    before, watched.report = watched.report, report
    try:
        yield
    finally:
        watched.report = before
