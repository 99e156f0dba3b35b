"""Read the source of a function: what it changes outside of itself, without running it.

Assignments to global and nonlocal names, and iterators that go on, are found in its bytecode.
"""

from __future__ import annotations

import array
import ast
import collections
import enum
import inspect
import textwrap
import tokenize
import types
from collections.abc import Callable, Collection, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._references import (
    UNKNOWN,
    Load,
    attribute,
    closure_of,
    given,
    instructions,
    loads_of,
    python_layers,
)

_CONTAINERS = (list, dict, set, bytearray, collections.deque, array.array, np.ndarray)
_FIXED = (type(None), bool, int, float, complex, str, bytes, tuple, frozenset, np.generic, range)
# Methods that return None, so each call is a statement; of any object, and of containers alone.
_WHOLE = frozenset("fill itemset partition put sort".split())
_GROW = frozenset("add append extend insert put update write writelines".split())
_OF_CONTAINERS = frozenset(
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove "
    "reverse rotate sort subtract update".split()
)


class Owner(enum.Enum):
    """Whose object changes: an argument, the object of a method, or one from outside."""

    ARGUMENT = enum.auto()
    RECEIVER = enum.auto()
    OUTSIDE = enum.auto()


class How(enum.Enum):
    """How an object changes."""

    COUNTS = enum.auto()  # the new value depends on the old one: ``n += 1``, ``n = n + 1``
    GROWS = enum.auto()  # something is added or removed, or an iterator goes on
    WHOLE = enum.auto()  # all elements: ``x[:] = 0``, ``x.fill(0)``, ``out=x``
    ATTRIBUTE = enum.auto()
    ITEM = enum.auto()
    FIXED_ITEM = enum.auto()  # the index is a constant


class Change(NamedTuple):
    """What a function changes outside of itself.

    Attributes:
        what: the target as written, ``COUNTS['calls']``.
        file: the source file, or the name of the cell.
        line: the line in it, from 1.
        owner: whose object it is.
        how: how it changes.
        values: the object that changes, and those that lead to it; `UNKNOWN` where not known.
    """

    what: str
    file: str
    line: int
    owner: Owner
    how: How
    values: tuple[Any, ...]


# The statement or call, the target, the object that changes, and how.
_Target = tuple[Any, ast.expr, ast.expr, How]


def sources(function: Callable[..., Any], leading: int = 0) -> Iterator[Source]:
    """Yield the source of `function`, and of those that it wraps.

    Args:
        function: the host function.
        leading: the number of leading parameters that it may write into.
    """
    for number, (value, python, receiver) in enumerate(python_layers(function)):
        known = given(value, python, receiver)
        yield Source(python, known, receiver is not UNKNOWN, leading, wrapped=number > 0)


class Source:
    """The source of a Python function, and the values of names in it before it runs.

    Attributes:
        file: the source file, or the name of the cell.
        before: the line before its first one.
        loads: what the function refers to.
        nodes: those of its syntax tree; none if the source is unknown.
    """

    def __init__(
        self,
        function: types.FunctionType,
        known: dict[str, Any],
        is_method: bool,
        leading: int,
        *,
        wrapped: bool,
    ) -> None:
        self._code = function.__code__
        self.file, self.before = self._code.co_filename, self._code.co_firstlineno - 1
        self.loads = list(loads_of(function, known))
        tree = _tree_of(function)
        self.nodes: list[Any] = [] if tree is None else list(ast.walk(tree))
        names = _Names(self.nodes)
        listed = [] if tree is None else [*tree.args.posonlyargs, *tree.args.args]
        bound = listed[0].arg if is_method and listed else ""
        self._receiver = bound if names.is_kept(bound) else ""
        self._arguments = {  # arrays, as far as is known; a decorator may pass copies
            one.arg
            for one in ([] if wrapped else listed[leading + is_method :])
            if one.arg not in known and not _is_number(one.annotation) and names.is_kept(one.arg)
        }
        kept = {
            name: value
            for name, value in known.items()
            if not issubclass(type(value), _FIXED) and names.is_kept(name)
        }
        self._local = names.local - set(kept)
        self._outside = collections.ChainMap(kept, closure_of(function), function.__globals__)
        self._assigned = names.assigned
        self._caches = set(_looked_up(self.nodes))
        self._once = set(_made_once(self.nodes))
        self._starts = dict(_set_first(getattr(tree, "body", ())))

    def changes(self) -> Iterator[Change]:
        """Yield what it changes outside of itself.

        Left out are caches, which it looks up before; what it makes once, below
        ``if MODEL is None``; and assignments to a named item of an argument, ``params["w"] = ...``:
        each call gets a dict of its own.
        """
        for name, line in _stored(self._code, frozenset(self._code.co_freevars)):
            if (name, line - self.before) not in self._once:
                value = self._outside.get(name)
                yield Change(name, self.file, line, Owner.OUTSIDE, How.COUNTS, (value,))
        for load in self.loads:
            if issubclass(type(load.value), Iterator) and self.is_variable(load):
                values = (load.value,)
                yield Change(load.name, self.file, load.line, Owner.OUTSIDE, How.GROWS, values)
        for node, target, thing, how in self._targets():
            owner, values = self._owner(thing), tuple(self._values(thing))
            if owner is Owner.ARGUMENT:
                list_like = how is How.GROWS or isinstance(target, ast.Attribute)
                reported = not (list_like or _is_named(target) or _adds_text(node))
            else:
                reported = owner is not None and not self._is_allowed(node, target, thing, how)
            if owner is not None and reported:
                line = self.before + node.lineno
                yield Change(ast.unparse(target), self.file, line, owner, how, values)

    def is_variable(self, load: Load) -> bool:
        """Return whether it refers to a variable from outside, and not to an attribute."""
        return load.value is self._value(load.name) is not UNKNOWN

    def calls_without_arguments(self, names: Collection[str]) -> Iterator[tuple[str, int]]:
        """Yield calls of functions of these names with no arguments but None, and their lines."""
        for node in self.nodes if names else ():
            if isinstance(node, ast.Call) and not node.keywords and all(map(_is_none, node.args)):
                if ast.unparse(node.func) in names:
                    yield ast.unparse(node), self.before + node.lineno

    def _is_allowed(self, node: Any, target: ast.expr, thing: ast.expr, how: How) -> bool:
        parts = list(_parts(target))
        if any((part, node.lineno) in self._once for part in parts):
            return True
        if how in (How.GROWS, How.ITEM) and ast.unparse(thing) in self._caches:
            return True
        if self._owner(thing) is Owner.OUTSIDE:
            return False
        starts_anew = any(self._starts.get(part, node.lineno) < node.lineno for part in parts)
        return starts_anew or (how is How.GROWS and not is_container(self._first(thing)))

    def _targets(self) -> Iterator[_Target]:
        statements = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        for node in self.nodes:
            match node:
                case ast.AugAssign(target=ast.Name(id=name) as target):
                    if name in self._arguments:  # a global name is found in the bytecode
                        yield node, target, target, How.COUNTS
                case ast.AugAssign(target=ast.Subscript() | ast.Attribute() as target):
                    yield node, target, target.value, How.COUNTS
                case ast.Assign(targets=targets, value=value):
                    for target in targets:
                        for part in getattr(target, "elts", [target]):
                            yield from self._assigned_to(node, part, value)
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    yield from self._assigned_to(node, target, value)
                case ast.Delete(targets=targets):
                    for target in targets:
                        if isinstance(target, ast.Subscript):
                            yield node, target.value, target.value, How.GROWS
                case ast.Call(
                    func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"),
                    args=[thing, ast.Constant(value=str(name)), value],
                ):
                    target = ast.Attribute(thing, name, ast.Store())
                    yield from self._assigned_to(node, target, value)
                case ast.Call(func=func):
                    match self._meant(func):  # add = LOG.append
                        case ast.Attribute(value=target, attr=method):
                            how = self._how(target, method, id(node) in statements)
                            if how is not None:
                                yield node, target, target, how
            if isinstance(node, ast.Call):
                for one in node.keywords:
                    if one.arg == "out":
                        yield node, one.value, one.value, How.WHOLE
            for file in files_of_print(node):
                yield node, file, file, How.GROWS

    def _how(self, target: ast.expr, method: str, is_statement: bool) -> How | None:
        """Return how the call of a method changes its object; None: not at all."""
        value = self._first(target)
        if issubclass(type(value), types.ModuleType | type):
            return None
        if is_statement and method in _WHOLE:
            return How.WHOLE
        of_container = method in _OF_CONTAINERS and is_container(value)
        return How.GROWS if of_container or (is_statement and method in _GROW) else None

    def _assigned_to(self, node: Any, target: ast.expr, value: ast.expr) -> Iterator[_Target]:
        if isinstance(target, ast.Attribute):
            how, get = How.ATTRIBUTE, f"getattr({ast.unparse(target.value)}, {target.attr!r}"
        elif isinstance(target, ast.Subscript):
            fixed = isinstance(target.slice, ast.Constant)
            how = How.FIXED_ITEM if fixed else How.ITEM
            how = How.WHOLE if _is_whole(target.slice) else how
            get = f"{ast.unparse(target.value)}.get({ast.unparse(target.slice)}"
        else:
            return
        for one in ast.walk(self._meant(value)):  # n = n + 1
            if isinstance(one, ast.BinOp) and not isinstance(one.op, ast.BitOr):
                old = [ast.unparse(self._meant(operand)) for operand in (one.left, one.right)]
                if any(text == ast.unparse(target) or text.startswith(get) for text in old):
                    how = How.COUNTS
        yield node, target, target.value, how

    def _meant(self, node: ast.expr) -> ast.expr:
        return self._assigned.get(node.id, node) if isinstance(node, ast.Name) else node

    def _owner(self, thing: ast.expr) -> Owner | None:
        """Return whose object an expression is; None: one of the function itself, or unknown."""
        name = _base_of(thing)
        other = self._assigned.get(name or "")
        if isinstance(other, ast.Attribute) and self._first(other) is not UNKNOWN:
            return self._owner(other)
        if isinstance(other, ast.Name) and other.id != name:
            return self._owner(other)
        if name is None or name in self._arguments:
            return None if name is None else Owner.ARGUMENT
        if name == self._receiver:
            return Owner.RECEIVER
        return None if name in self._local else Owner.OUTSIDE

    def _first(self, thing: ast.expr) -> Any:
        return next(self._values(thing))

    def _values(self, thing: ast.expr) -> Iterator[Any]:
        """Yield the value of an expression, and of those that lead to it."""
        if isinstance(thing, ast.Attribute):
            first, *others = self._values(thing.value)
            yield from (attribute(first, thing.attr), first, *others)
        elif isinstance(thing, ast.Subscript):
            yield from (UNKNOWN, *self._values(thing.value))
        elif not isinstance(thing, ast.Name):
            yield UNKNOWN
        elif isinstance(self._assigned.get(thing.id), ast.Name | ast.Attribute):
            yield from self._values(self._assigned[thing.id])
        else:
            yield self._value(thing.id)

    def _value(self, name: str) -> Any:
        return UNKNOWN if name in self._local else self._outside.get(name, UNKNOWN)


class _Names:
    """The names in the source of a function.

    Attributes:
        local: those that it assigns, and those of parameters, functions, classes and imports.
        assigned: the expressions that stand for a name which is assigned once.
    """

    def __init__(self, nodes: list[Any]) -> None:
        stored = [n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        added = {id(node.target) for node in nodes if isinstance(node, ast.AugAssign)}
        self._again = {node.id for node in stored if id(node) not in added}
        shared = {
            name
            for node in nodes
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        self._named = named = collections.Counter(_named(nodes))
        self.local = {node.id for node in stored} - shared | set(named)
        counts = collections.Counter([node.id for node in stored])
        self.assigned = {
            node.targets[0].id: node.value
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
            and counts[node.targets[0].id] == 1 and node.targets[0].id not in shared | set(named)
        }  # fmt: skip

    def is_kept(self, parameter: str) -> bool:
        """Return whether a name is not assigned again, and not a parameter of an inner function."""
        return parameter not in self._again and self._named[parameter] <= 1


def _named(nodes: list[Any]) -> Iterator[str]:
    """Yield the names of parameters, functions, classes and imports, also of nested ones."""
    for node in nodes:
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def _tree_of(function: types.FunctionType) -> ast.FunctionDef | ast.Lambda | None:
    """Return the syntax tree of `function`; None if its source is unknown, or not the only one."""
    code = function.__code__
    try:  # of the code: the source of a function is that of the one that it wraps
        tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    except (OSError, SyntaxError, TypeError, ValueError, RecursionError, tokenize.TokenError):
        return None
    if code.co_name == "<lambda>":
        found: list[Any] = [
            node
            for node in ast.walk(tree)
            if isinstance(node, ast.Lambda)
            and tuple(one.arg for one in node.args.args) == code.co_varnames[: code.co_argcount]
        ]
    else:
        found = [n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == code.co_name]
    return found[0] if len(found) == 1 else None


def _stored(code: types.CodeType, free: frozenset[str]) -> Iterator[tuple[str, int]]:
    """Yield the global and nonlocal names that the code assigns to, with their lines."""
    for instruction in instructions(code):
        opname, name = instruction.opname, instruction.argval
        if opname in ("STORE_GLOBAL", "DELETE_GLOBAL") or (
            opname in ("STORE_DEREF", "DELETE_DEREF") and name in free
        ):
            line = instruction.positions.lineno if instruction.positions else None
            yield name, line or code.co_firstlineno
        elif isinstance(name, types.CodeType):
            yield from _stored(name, free & frozenset(name.co_freevars))


def _looked_up(nodes: list[Any]) -> Iterator[str]:
    """Yield what is looked up in: ``key in CACHE``, ``CACHE.get(key)``."""
    catches = any(
        isinstance(node, ast.ExceptHandler) and "KeyError" in ast.unparse(node.type or node)
        for node in nodes
    )
    for node in nodes:
        match node:
            case ast.Compare(ops=[ast.In() | ast.NotIn(), *_], comparators=[thing, *_]):
                yield ast.unparse(thing)
            case ast.Attribute(value=thing, attr="get"):
                yield ast.unparse(thing)
            case ast.Subscript(value=thing, ctx=ast.Load()) if catches:
                yield ast.unparse(thing)


def _made_once(nodes: list[Any]) -> Iterator[tuple[str, int]]:
    """Yield targets and lines below ``if MODEL is None``, ``if not MODEL``, ``if not hasattr``."""
    for node in nodes:
        match node:
            case ast.If(
                test=ast.UnaryOp(
                    op=ast.Not(),
                    operand=ast.Call(
                        func=ast.Name(id="hasattr"),
                        args=[thing, ast.Constant(value=str(name))],
                    ),
                )
            ):
                target = f"{ast.unparse(thing)}.{name}"
            case (
                ast.If(test=ast.Compare(left=thing, ops=[ast.Is()]))
                | ast.If(test=ast.UnaryOp(op=ast.Not(), operand=thing))
            ):
                target = ast.unparse(thing)
            case _:
                continue
        last = node.body[-1].end_lineno or node.lineno
        yield from ((target, line) for line in range(node.lineno, last + 1))


def _set_first(statements: Any) -> Iterator[tuple[str, int]]:
    """Yield what the statements of a function set to a value of its own, with the line."""
    for node in reversed(statements if isinstance(statements, list) else []):
        match node:
            case ast.Assign(targets=[target], value=value):
                target = target.value if isinstance(target, ast.Subscript) else target
                if ast.unparse(target) not in ast.unparse(value):
                    yield ast.unparse(target), node.lineno
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=target, attr="clear" | "fill"))):
                yield ast.unparse(target), node.lineno


def is_container(value: Any) -> bool:
    """Return whether a value is a list, a dict, an array or the like, whatever its class says."""
    return issubclass(type(value), _CONTAINERS)


def files_of_print(node: ast.AST) -> list[ast.expr]:
    """Return the file that a call of print writes to, if `node` is one that names it."""
    match node:
        case ast.Call(func=ast.Name(id="print"), keywords=keywords):
            return [one.value for one in keywords if one.arg == "file"]
    return []


def _parts(target: ast.expr) -> Iterator[str]:
    """Yield what a target leads through: ``self.log[0]``, ``self.log``, ``self``."""
    yield ast.unparse(target)
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
        yield ast.unparse(target)


def _base_of(target: ast.expr) -> str | None:
    """Return the name that a target starts with: ``x`` for ``x[0].real[1]``."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _is_named(target: ast.expr) -> bool:
    """Return whether it leads through a key that is text: ``params["w"]``."""
    if isinstance(target, ast.Subscript) and _is_text(target.slice):
        return True
    return isinstance(target, ast.Subscript | ast.Attribute) and _is_named(target.value)


def _is_number(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id in ("bool", "float", "int", "str")


def _adds_text(node: ast.AST) -> bool:
    return isinstance(node, ast.AugAssign) and (
        _is_text(node.value) or isinstance(node.value, ast.JoinedStr)
    )


def _is_whole(index: ast.expr) -> bool:
    """Return whether it is ``[...]`` or ``[:]``."""
    if isinstance(index, ast.Slice):
        return index.lower is index.upper is index.step is None
    return isinstance(index, ast.Constant) and index.value is ...


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
