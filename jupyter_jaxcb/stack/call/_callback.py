"""The registered callback: the only static parameter of a bind."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

from jax.tree_util import PyTreeDef

from ... import jax_compat
from ...recording import Note, Site, VmapLevel, on_one_line
from ..options import Decides, Options


class HostFunction:
    """The user's function, as compiled programs refer to it.

    A function that a notebook cell or a module registers is *late bound*: programs hold this
    object, and running the cell or module again replaces `current`, so that compiled programs call
    the new body (see `_late_binding`). Any other function is bound permanently, and two
    HostFunctions are equal if their functions are.
    """

    __slots__ = (
        "__weakref__", "because", "calls", "current", "definition", "derivative", "followers",
        "late_bound", "made_by", "name", "replaced", "rule", "version",
    )  # fmt: skip

    def __init__(self, function: Callable[..., Any], *, late_bound: bool = False) -> None:
        self.current = function
        self.late_bound = late_bound
        self.name = name_of(function)
        self.made_by = "call"  # what registered it: a "call" or a "decorator"
        self.rule: str | None = None  # "jvp", "vjp", "residual" or "finite", for advice
        self.derivative: Any = None  # what a capability knows to differentiate its calls
        self.because = ""  # what it returns and why, if its user does not declare that
        self.version = 1  # version of the body
        self.calls = 0  # host calls started; approximate if several threads call at once
        self.replaced = False  # another function took its name, and this one calls the old body
        self.definition: Any = None  # the `_late_binding.Definition` that made it
        self.followers: weakref.WeakSet[Any] = weakref.WeakSet()  # notified of each new body

    @property
    def variable(self) -> str:
        """A name for code in messages, such as ``@solve.defjvp``: a lambda has none."""
        return self.name if self.name.isidentifier() else "callback"

    def rebind(self, function: Callable[..., Any]) -> None:
        """Replace the body in every program that calls this function."""
        if function is not self.current:
            self.current = function
            self.version += 1
            self.notify()

    def notify(self) -> None:
        """Let the followers look at `current` again."""
        for follower in list(self.followers):
            follower.rebound()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, HostFunction):
            return NotImplemented
        if self.late_bound or other.late_bound:
            return False
        return _same(self.current, other.current)

    def __hash__(self) -> int:
        if not self.late_bound and issubclass(type(self.current), Hashable):
            try:
                return hash(self.current)
            except TypeError:  # its type is hashable, its contents are not
                pass
        return id(self.current) if not self.late_bound else id(self)

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """Leave out what only this process needs: no cell runs again in a worker process."""
        names = {*self.__slots__} - {"__weakref__", "followers"}
        own = {name: getattr(self, name) for name in names}
        return None, own | {"definition": None, "derivative": None}

    def __repr__(self) -> str:
        return self.name


def given_name(function: Any) -> str:
    """Return ``function.__name__`` as it is shown; empty if it is missing or not a string."""
    try:
        name = function.__name__
    except KeyboardInterrupt:
        raise
    except BaseException:  # a user's class may raise anything
        name = ""
    return on_one_line(str.__str__(name)) if issubclass(type(name), str) else ""


def name_of(function: Any) -> str:
    """Return the name of `function`, of what a partial calls, or of its type if there is none."""
    while issubclass(type(function), functools.partial):  # it may lie about its class, or raise
        function = function.func
    return given_name(function) or on_one_line(type(function).__name__)


def text_of(value: Any) -> str:
    """Return ``repr(value)`` as it is shown, on one line; the class of a value that has none."""
    try:
        text = repr(value)
    except Exception:  # of the user's class
        text = f"<{type(value).__name__}>"
    return on_one_line(text)


def plain_signature(function: Any) -> inspect.Signature:
    """As `inspect.signature`, also of an object whose ``__eq__`` or ``__name__`` raises.

    Raises:
        TypeError, ValueError: it has no signature.
    """
    try:
        return inspect.signature(function)
    except KeyboardInterrupt:
        raise
    except BaseException:  # inspect compares it with classes and asks for its name
        call: Any = type(function).__call__
        if not isinstance(call, FunctionType):
            raise
        return inspect.signature(MethodType(call, function))


def _same(one: Any, other: Any) -> bool:
    """Return whether ``one == other`` is exactly True; JAX's caches compare with anything.

    A comparison that returns an array, or raises, counts as unequal.
    """
    if one is other:
        return True
    try:
        return (one == other) is True
    except Exception:
        return False


class Bind:
    """One bind while JAX processes it; compared by identity.

    Args:
        site: the call site, or a function that finds it when it is first needed.
        around: see below.
        in_rule: see below.
        is_replaced: see below.

    Attributes:
        around: the loops, branches and vmaps being traced around it, innermost first, up to the
            innermost jit: ("scan", 5), ("while", None), ("cond", None), ("vmap", 4). And
            ("traced jit", None) for a jitted function that JAX had traced when it called the rule.
        in_rule: whether a derivative rule made it, or its value beside a derivative, which nobody
            may need.
        is_replaced: whether a derivative around it may use the binds of a rule in its place.
    """

    __slots__ = ("__weakref__", "_site", "around", "in_rule", "is_replaced")

    def __init__(
        self,
        site: Site | Callable[[], Site],
        around: tuple[tuple[str, int | None], ...] = (),
        in_rule: bool = False,
        is_replaced: bool = False,
    ) -> None:
        self._site = site
        self.around = around
        self.in_rule = in_rule
        self.is_replaced = is_replaced

    @property
    def site(self) -> Site:
        """The call site."""
        if not isinstance(self._site, Site):
            self._site = self._site()
        return self._site

    def loops_over_elements(self) -> None:
        """Note that the program loops over the batch elements of the innermost vmap around it."""
        kinds = [kind for kind, _ in self.around]
        if "vmap" in kinds:
            n = kinds.index("vmap")
            loop = "scan", self.around[n][1]
            self.around = (*self.around[:n], loop, *self.around[n + 1 :])


class Static:
    """The arguments that are not arrays, by position among the flat leaves.

    Static arguments of a debug callback may be anything, even unhashable, and are compared by
    identity. Those of the other flavors are compared as jit compares its static arguments.
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

    Two are equal if their functions and argument trees are, wherever they were bound. If the site
    took part in the comparison, eager code would compile once per line.
    """

    host: HostFunction
    options: Options  # compared before `out_tree`: a PyTreeDef raises if it is compared with None
    in_tree: PyTreeDef  # of (args, kwargs)
    out_tree: PyTreeDef | None  # of the declared result; None: the return value is ignored
    bind: Bind = dataclasses.field(compare=False)
    static: Static = NO_STATIC
    exact: bool = False  # whether a result must already have the declared dtypes and structure
    any_structure: bool = False  # whether another structure is a warning if the leaves fit
    leading: int = 0  # parameters of the host function before the arguments of a call
    differentiated: bool = False  # whether a derivative uses what it returns beside its value

    def leaves(self, operands: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the leaves of the arguments of a call, and the operands behind them: a mask.

        Args:
            operands: its operands, or what takes their places.
        """
        static, rest = self.static.values, iter(operands)
        count = self.in_tree.num_leaves
        return [static[n] if n in static else next(rest) for n in range(count)], list(rest)

    @property
    def varies(self) -> bool:
        """Whether data decides how many host calls a crossing makes."""
        return any(row.varies for row in self.options.capabilities)

    def note(self, platform: str, levels: Sequence[VmapLevel]) -> Note | None:
        """Return what the recording says of its calls in a program for a platform."""
        notes = (row.note(self, platform, levels) for row in self.options.capabilities if row.note)
        return next(filter(None, notes), None)

    def facts(self, *, eager: bool = False) -> dict[str, Any]:
        """Return further fields of its `LoweredSite`; for an eager call, not of its function."""
        facts: dict[str, Any] = {"drop_in": True} if self.options.drop_in else {}
        for row in self.options.capabilities:
            if row.facts is not None and not (eager and row.decides is Decides.INSIDE):
                facts |= row.facts(self)
        return facts

    def __repr__(self) -> str:  # printed in every jaxpr
        return on_one_line(f"{self.host.name}@{self.bind.site.where}")
