"""Proxies for the callbacks of JAX's own API, used in programs while JAX is observed.

A proxy compares equal to the original, calls it and prints like it, so JAX's caches, jaxprs and
results do not change.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from ... import jax_compat
from ...recording import VmapLevel
from ._callback import Bind, HostFunction

_switches = 0
_noting = False


def switch(on: bool) -> None:
    """Turn the observation of JAX's callbacks on or off, see `diagnostics.observe`."""
    global _switches
    _switches += on is not is_observing()


def switches() -> int:
    """Return how often the observation was turned on or off; odd while it is on."""
    return _switches


def is_observing() -> bool:
    """Return whether callbacks of JAX's own API are recorded now."""
    return _switches % 2 == 1


def note(on: bool) -> None:
    """Turn the noting of JAX's callbacks on or off: they are not recorded, but can be later."""
    global _noting
    _noting = on


def is_watching() -> bool:
    """Return whether callbacks of JAX's own API are recorded or noted now."""
    return _noting or is_observing()


class Proxy:
    """Compares, prints and copies as the original."""

    __slots__ = ("__weakref__", "original")

    def __init__(self, original: Any) -> None:
        self.original = original

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python looks these up before `original` is set
            raise AttributeError(name)
        return getattr(self.original, name)

    def __eq__(self, other: Any) -> bool:
        return self.original == (other.original if issubclass(type(other), Proxy) else other)

    def __hash__(self) -> int:
        return hash(self.original)

    def __repr__(self) -> str:  # printed in every jaxpr
        return repr(self.original)

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.original,)


class Batch(NamedTuple):
    """The vmaps around a bind of JAX's own API.

    Attributes:
        levels: the vmaps that batched an argument, innermost first.
        element: the batch element that the bind is for, if JAX makes one bind for each.
        numbers: numbers for the binds that the last vmap makes, one for each of its elements.
    """

    levels: tuple[VmapLevel, ...] = ()
    element: int | None = None
    numbers: Iterator[int] | None = None

    def within(self, level: VmapLevel, unrolled: bool) -> Batch:
        """Return the batch inside one more vmap, for whose elements JAX may make a bind each."""
        numbers = itertools.count() if unrolled else None
        return Batch((*self.levels, level), self.element, numbers)

    def numbered(self) -> Batch:
        """Return the batch of the next bind that an unrolled vmap makes."""
        if self.numbers is None:
            return self
        inside = math.prod(level.size for level in self.levels[:-1])
        return Batch(self.levels, (self.element or 0) + next(self.numbers) * inside)


NO_BATCH = Batch()


class Observed(Proxy):
    """The callback that a bind of JAX's own API holds, together with the bind."""

    __slots__ = ("batch", "bind")

    def __init__(self, original: Any, bind: Bind, batch: Batch = NO_BATCH) -> None:
        super().__init__(original)
        self.bind = bind
        self.batch = batch

    def batched(self, batch: Batch) -> Observed:
        """Return a copy for another batch."""
        return Observed(self.original, self.bind, batch)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.original(*args, **kwargs)


class ObservedFormat(str):
    """The format string of a `jax.debug.print`, together with the bind."""

    __slots__ = ("batch", "bind", "original")
    bind: Bind
    batch: Batch
    original: str

    @classmethod
    def of(cls, original: str, bind: Bind, batch: Batch = NO_BATCH) -> ObservedFormat:
        """Return the format string `original` of the print bound by `bind`."""
        self = cls(str.__str__(original))
        self.original, self.bind, self.batch = original, bind, batch
        return self

    def batched(self, batch: Batch) -> ObservedFormat:
        """Return a copy for another batch."""
        return ObservedFormat.of(self.original, self.bind, batch)

    def format(self, *args: Any, **kwargs: Any) -> str:
        """Format with `original`, whose class may override ``format``."""
        return self.original.format(*args, **kwargs)

    def __str__(self) -> str:  # printed in every jaxpr
        return str(self.original)

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.original,)


_HELD = frozenset({Observed, ObservedFormat})


def is_held(held: Any) -> bool:
    """Return whether `held`, held by a bind of JAX's own API, is one of these proxies.

    Not `isinstance`: that reads ``__class__`` of the user's callback, which may return anything.
    """
    return type(held) in _HELD


def user_function_name(held: Any) -> str:
    """Return the name of the user's function that a bind of JAX's own API calls."""
    function = jax_compat.user_function(held)
    return "debug.print" if function is None else HostFunction(function).name
