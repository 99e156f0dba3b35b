"""The registered callback: the one static parameter of a bind."""

from __future__ import annotations

import dataclasses
import types
import weakref
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from jax.tree_util import PyTreeDef

from ..recording import Site
from ._spread import Spread


class HostFunction:
    """The user's function as programs refer to it.

    A function registered at top level is *late bound*: programs hold this object, and
    registering another body under the same name and interface swaps `current`, so that what is
    compiled already calls the new body. Anything else is bound by itself: two of these are equal
    if their functions are.
    """

    __slots__ = (
        "__weakref__", "calls", "current", "late_bound", "made_by", "name", "replaced", "version",
    )  # fmt: skip

    def __init__(self, function: Callable[..., Any], *, late_bound: bool = False) -> None:
        self.current = function
        self.late_bound = late_bound
        self.name = _name(function)
        self.made_by = "call"  # what made it a callback: a "call", a "decorator", the "magic"
        self.version = 1  # of the body
        self.calls = 0  # host calls begun; threads that count at once may lose one
        self.replaced = False  # a registration with another interface has taken the name over

    def rebind(self, function: Callable[..., Any]) -> None:
        """Swaps the body under every program that calls this function."""
        if function is not self.current:
            self.current = function
            self.version += 1

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, HostFunction):
            return NotImplemented
        if self.late_bound or other.late_bound:
            return False
        return _same(self.current, other.current)

    def __hash__(self) -> int:
        if not self.late_bound and isinstance(self.current, Hashable):
            try:
                return hash(self.current)
            except TypeError:  # hashable by its type, not by its contents
                pass
        return id(self.current) if not self.late_bound else id(self)

    def __repr__(self) -> str:
        return self.name


def _name(function: Any) -> str:
    """What it is called: by its type where it has no name, or none that is text."""
    try:
        name = function.__name__
    except Exception:  # it may answer, or fail, as it likes
        name = ""
    return str.__str__(name) if issubclass(type(name), str) and name else type(function).__name__


def _same(one: Any, other: Any) -> bool:
    """Whether they say that they are equal; JAX's caches compare with anything.

    One that answers with an array, or raises, is another one.
    """
    if one is other:
        return True
    try:
        return (one == other) is True
    except Exception:
        return False


@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class Bind:
    """One bind, while JAX has it in hand; told from others by identity.

    Attributes:
        site: where it was made.
        around: the loops, branches and vmaps that were being traced around it, innermost first,
            as far as the innermost jit: ("scan", 5), ("while", None), ("cond", None), ("vmap", 4).
    """

    site: Site
    around: tuple[tuple[str, int | None], ...] = ()


class Static:
    """Arguments that are no arrays, by position among the flat leaves.

    Those of a debug callback may be anything, unhashable things included, and are compared by
    identity. Those of the others are compared as jit compares its static arguments.
    """

    __slots__ = ("by_value", "values")

    def __init__(self, values: Mapping[int, Any], *, by_value: bool = False) -> None:
        self.values = values
        self.by_value = by_value

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Static) or not (self.by_value and other.by_value):
            return False
        mine, theirs = self._typed(), other._typed()
        return mine.keys() == theirs.keys() and all(
            kind is theirs[place][0] and _same(value, theirs[place][1])
            for place, (kind, value) in mine.items()
        )

    def __hash__(self) -> int:
        return hash(frozenset(self._typed().items())) if self.by_value else id(self)

    def _typed(self) -> dict[int, tuple[type, Any]]:
        return {place: (type(value), value) for place, value in self.values.items()}


NO_STATIC = Static({})


@dataclasses.dataclass(frozen=True, slots=True, repr=False)
class HostCallback:
    """A host function, callable with flat arrays: the static parameter of a bind.

    Equal for equal functions and argument trees, wherever they were bound: with the site in the
    equality, eager code would compile once per line.
    """

    host: HostFunction
    in_tree: PyTreeDef  # of (args, kwargs)
    out_tree: PyTreeDef | None  # of the declared result; None: the answer is ignored
    bind: Bind = dataclasses.field(compare=False)
    static: Static = NO_STATIC
    arrays: str = "numpy"  # what the host function gets, see `_arrays`
    cast: bool = False  # whether an answer may lose when it is converted within its kind
    exact: bool = False  # whether an answer must have the declared dtypes and structure as they are
    spread: Spread | None = None  # over workers; None: on XLA's own thread

    def __repr__(self) -> str:  # printed in every jaxpr
        return f"{self.host.name}@{self.bind.site.where}"


# By module, qualified name and interface.
_registered: weakref.WeakValueDictionary[tuple[str, str, Hashable], HostFunction] = (
    weakref.WeakValueDictionary()
)


def register(function: Callable[..., Any], interface: Hashable) -> HostFunction:
    """The `HostFunction` for `function`; the one programs hold already, where there is one.

    Args:
        function: the host function.
        interface: what programs were compiled against (flavor, result, vmap method). Programs
            that hold a registration of the same name with another interface are stale from now on.
    """
    if not _is_defined_at_top_level(function):
        return HostFunction(function)
    place = (function.__module__, function.__qualname__)
    host = _registered.get((*place, interface))
    if host is None:
        host = _registered[*place, interface] = HostFunction(function, late_bound=True)
    elif host.current is not function and host.current.__code__ is function.__code__:
        return HostFunction(function)  # one def run again by a loop: not the same with a new body
    for (*other, _), known in list(_registered.items()):
        if tuple(other) == place:  # the same function with other options replaces nothing
            known.replaced = known is not host and known.current is not function
    host.rebind(function)
    return host


def _is_defined_at_top_level(function: Callable[..., Any]) -> bool:
    """Whether its name says which function it is: no closure, lambda, method or wrapper."""
    return (
        isinstance(function, types.FunctionType)
        and function.__code__.co_qualname == function.__qualname__
        and "<" not in function.__qualname__
    )
