"""A ``with`` block that always ends, even if Ctrl-C interrupts its entry or its exit."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
import weakref
from typing import Any


class _Exit:
    """The descriptor behind ``__exit__``, which Python looks up before it calls ``__enter__``.

    An interrupt may arrive at the first instruction of ``__exit__`` or the last one of
    ``__enter__``, where neither can catch it. But Python drops the bound ``__exit__`` it looked up
    as soon as the block is left, and no frame or traceback refers to it. So a weak reference to
    that object ends the block.
    """

    def __get__(self, block: Block | None, kind: type[Block]) -> Any:
        if block is None:
            return _leave
        if block._left is not None and block._left() is not None:  # `with` has its own already
            return functools.partial(_leave, block)
        found = functools.partial(_leave, block)
        block._left = weakref.ref(found, lambda _: block.finish())
        return found


_spent = threading.local()


def spent_in_blocks() -> int:
    """Return how long, in ns, this thread has been beginning and ending blocks."""
    return getattr(_spent, "ns", 0)


def _count(began_ns: int) -> None:
    _spent.ns = spent_in_blocks() + time.perf_counter_ns() - began_ns


class Block(contextlib.ContextDecorator):
    """A ``with`` block whose `end` always follows its `begin`, whatever interrupts either.

    To be usable as a decorator, a subclass needs a `_recreate_cm` that returns an equal block.
    """

    _left: weakref.ref | None = None
    __exit__: Any = _Exit()

    def __enter__(self) -> Any:
        began = time.perf_counter_ns()
        try:
            return self.begin()
        finally:
            _count(began)

    def begin(self) -> Any:
        """Begin the block, return the ``as`` target. `end` follows even if this is interrupted."""
        raise NotImplementedError

    def leave(self, error: BaseException | None) -> None:
        """Handle the end of the body, which may have raised `error`; an interrupt may skip this."""

    def end(self) -> None:
        """End the block. Called again if interrupted, and also if `begin` did nothing."""
        raise NotImplementedError

    @property
    def is_left(self) -> bool:
        """Whether the block has been left but its `end` has not run to completion."""
        return self._left is not None and self._left() is None

    def finish(self) -> None:
        """End the block, once."""
        if self._left is not None:
            self.end()
            self._left = None


def _leave(block: Block, kind: Any, error: BaseException | None, traceback: Any) -> None:
    __tracebackhide__ = True
    began = time.perf_counter_ns()
    try:
        block.leave(error)
    finally:
        block.end()  # not `finish`: an ExitStack takes `__exit__` from the class, see `_Exit`
        block._left = None
        _count(began)
