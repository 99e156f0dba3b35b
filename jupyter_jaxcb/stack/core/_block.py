"""A ``with`` block that ends, wherever an interrupt comes."""

from __future__ import annotations

import contextlib
import functools
import weakref
from typing import Any


class _Exit:
    """What Python finds as ``__exit__``, before it calls ``__enter__``.

    An interrupt may come at the very first instruction of an ``__exit__``, or at the last one of an
    ``__enter__``, where no code of theirs can catch it. But what was found is dropped as soon as
    the block is left, and no frame or traceback refers to it. So its end is that of the block.
    """

    def __get__(self, block: Block | None, kind: type[Block]) -> Any:
        if block is None:
            return _leave
        if block._left is not None and block._left() is not None:  # somebody only looks
            return functools.partial(_leave, block)
        found = functools.partial(_leave, block)
        block._left = weakref.ref(found, lambda _: block.finish())
        return found


class Block(contextlib.ContextDecorator):
    """A ``with`` block; what begins here ends, whatever interrupts which step of it.

    As a decorator it needs a `_recreate_cm` that makes another one like it.
    """

    _left: weakref.ref | None = None
    __exit__: Any = _Exit()

    def __enter__(self) -> Any:
        return self.begin()

    def begin(self) -> Any:
        """Begins the block; returns what ``as`` names. `end` follows even if it is interrupted."""
        raise NotImplementedError

    def leave(self, error: BaseException | None) -> None:
        """The body has ended, with `error` or without; an interrupt of this may skip the rest."""

    def end(self) -> None:
        """Ends the block; done again if it was interrupted, and also if nothing has begun."""
        raise NotImplementedError

    @property
    def is_left(self) -> bool:
        """Whether the block is left, and its end has not been carried out, or not wholly."""
        return self._left is not None and self._left() is None

    def finish(self) -> None:
        """Ends the block, once."""
        if self._left is not None:
            self.end()
            self._left = None


def _leave(block: Block, kind: Any, error: BaseException | None, traceback: Any) -> None:
    __tracebackhide__ = True
    try:
        block.leave(error)
    finally:
        block.finish()
