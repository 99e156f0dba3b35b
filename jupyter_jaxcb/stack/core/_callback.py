"""The registered callback: the one static parameter of a bind."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any

from jax.tree_util import PyTreeDef

from ...recording import Site
from .. import jax_compat
from ._options import ExecutorOptions


class HostFunction:
    """The user's function as programs refer to it.

    A function that a notebook cell or a module registers is *late bound*: programs hold this
    object, and running that cell or module again swaps `current`, so that what is compiled already
    calls the new body (see `_late_binding`). Anything else is bound by itself, for ever: two of
    these are equal if their functions are.
    """

    __slots__ = (
        "__weakref__", "calls", "current", "definition", "late_bound", "made_by", "name",
        "replaced", "version",
    )  # fmt: skip

    def __init__(self, function: Callable[..., Any], *, late_bound: bool = False) -> None:
        self.current = function
        self.late_bound = late_bound
        self.name = name_of(function)
        self.made_by = "call"  # what made it a callback: a "call", a "decorator", the "magic"
        self.version = 1  # of the body
        self.calls = 0  # host calls begun; threads that count at once may lose one
        self.replaced = False  # its name is registered again, and it still calls the old body
        self.definition: Any = None  # it was made by, see `_late_binding.Definition`

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

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """What is sent to a worker, where no cell runs again."""
        names = (name for name in self.__slots__ if name != "__weakref__")
        return None, {name: getattr(self, name) for name in names} | {"definition": None}

    def __repr__(self) -> str:
        return self.name


def given_name(function: Any) -> str:
    """Its name; empty where it has none, or none that is text."""
    try:
        name = function.__name__
    except KeyboardInterrupt:
        raise
    except BaseException:  # it may answer, or fail, as it likes
        name = ""
    return str.__str__(name) if issubclass(type(name), str) else ""


def name_of(function: Any) -> str:
    """Its name, that of the function a partial is made of, or that of its type."""
    while isinstance(function, functools.partial):
        function = function.func
    return given_name(function) or type(function).__name__


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


@jax_compat.held_weakly
@dataclasses.dataclass(frozen=True, slots=True, weakref_slot=True, repr=False)
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
    spread: ExecutorOptions | None = None  # over workers; None: on XLA's own thread

    def __repr__(self) -> str:  # printed in every jaxpr
        return f"{self.host.name}@{self.bind.site.where}"
