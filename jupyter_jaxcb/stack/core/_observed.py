"""What stands in programs in the place of the callbacks of JAX's own, while they are observed.

Each of these is equal to what it stands for, calls it and prints like it: JAX's caches, jaxprs and
results stay what they are.
"""

from __future__ import annotations

import copy
from typing import Any

from ...recording import VmapLevel
from .. import jax_compat
from ._callback import Bind, HostFunction

_switches = 0


def switch(on: bool) -> None:
    """Begins or ends the observation, see `_observe`."""
    global _switches
    _switches += on is not is_observing()


def switches() -> int:
    """How often the observation has begun or ended; odd while it is on."""
    return _switches


def is_observing() -> bool:
    """Whether callbacks of JAX's own are recorded now."""
    return _switches % 2 == 1


class StandsFor:
    """Is what it stands for, to whoever looks: equal to it, printed and copied as it."""

    __slots__ = ("__weakref__", "own")

    def __init__(self, own: Any) -> None:
        self.own = own

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python asks for these before there is an `own`
            raise AttributeError(name)
        return getattr(self.own, name)

    def __eq__(self, other: Any) -> bool:
        return self.own == (other.own if issubclass(type(other), StandsFor) else other)

    def __hash__(self) -> int:
        return hash(self.own)

    def __repr__(self) -> str:  # printed in every jaxpr
        return repr(self.own)

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.own,)


class Observed(StandsFor):
    """A callback of JAX's own, as a bind holds it, with the bind."""

    __slots__ = ("bind", "levels", "mapped")

    def __init__(
        self, own: Any, bind: Bind, levels: tuple[VmapLevel, ...] = (), mapped: bool = False
    ) -> None:
        super().__init__(own)
        self.bind = bind
        self.levels = levels  # the vmaps that JAX passed on to it
        self.mapped = mapped  # by any vmap: JAX loops over the batch elements of the others itself

    def with_level(self, level: VmapLevel | None) -> Observed:
        """The same one, mapped once more; None: JAX loops over the batch elements."""
        levels = self.levels if level is None else (*self.levels, level)
        return Observed(self.own, self.bind, levels, True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.own(*args, **kwargs)


class ObservedFormat(str):
    """The format of a `jax.debug.print`, with the bind."""

    __slots__ = ("bind", "mapped", "own")
    bind: Bind
    mapped: bool
    own: str

    @classmethod
    def of(cls, own: str, bind: Bind, mapped: bool = False) -> ObservedFormat:
        """The format `own` of the print that `bind` is the bind of."""
        self = cls(str.__str__(own))
        self.own, self.bind, self.mapped = own, bind, mapped
        return self

    @property
    def levels(self) -> tuple[VmapLevel, ...]:
        """JAX loops over the batch elements of a print itself."""
        return ()

    def with_level(self, level: VmapLevel | None) -> ObservedFormat:
        """The same one, mapped once more."""
        return ObservedFormat.of(self.own, self.bind, True)

    def format(self, *args: Any, **kwargs: Any) -> str:
        """As `own` does it, whose class may have a way of its own."""
        return self.own.format(*args, **kwargs)

    def __str__(self) -> str:  # printed in every jaxpr
        return str(self.own)

    def __reduce__(self) -> tuple[Any, ...]:
        return copy.copy, (self.own,)


_HELD = frozenset({Observed, ObservedFormat})


def is_held(held: Any) -> bool:
    """Whether a bind of JAX's own holds one of these, with its `Bind`.

    Not `isinstance`: it asks the user's callback for its class, which may answer as it likes.
    """
    return type(held) in _HELD


def own_name(held: Any) -> str:
    """The name of the user's function that a bind of JAX's own calls."""
    function = jax_compat.own_function(held)
    return "debug.print" if function is None else HostFunction(function).name
