"""Read what a function refers to and what it changes outside of itself, without running it.

Both are read from its source. Where there is none, the names in its code object still tell what it
refers to.
"""

from __future__ import annotations

import array
import ast
import builtins
import collections
import functools
import inspect
import itertools
import sys
import textwrap
import tokenize
import types
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ._functions import UNKNOWN, Called, attribute, called_by, closure_of, entries

MAX_FUNCTIONS = 60  # read at most for one host function, nearest first
MAX_ENTRIES = 100  # read of one dict, list or tuple
_CONTAINERS = (list, dict, set, bytearray, collections.deque, array.array, np.ndarray)
_GROW = frozenset(  # methods of containers
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove "
    "reverse rotate subtract update".split()
)
_FILL = frozenset("fill itemset partition sort".split())  # of containers, and of any argument
_REFERENCES = (ast.Name, ast.Attribute, ast.Subscript, ast.Call)
# How an object changes: to a value that depends on the old one (``n += 1``), by more or fewer
# elements (``log.append(x)``), to a new attribute or item, or all of it (``x.fill(0)``, ``out=x``).
_COUNTS, _GROWS, _SETS, _FILLS = range(4)


class Reference(NamedTuple):
    """An expression that refers to something outside of a function."""

    text: str  # as written: ``np.random.rand``
    value: Any
    file: str  # the source file, or the name of the cell
    line: int
    whole: bool  # False for ``np`` and ``np.random`` in ``np.random.rand``
    bare_call: str  # its call as written, if that has no arguments but None
    guessed: bool  # from the order of names, as there is no source


class Change(NamedTuple):
    """What a function changes outside of itself."""

    text: str  # as written: ``COUNTS['calls']``
    file: str
    line: int
    in_argument: bool
    sets_item: bool  # which the same call may read again, and no other one
    objects: tuple[Any, ...]  # what changes, then what leads to it; `UNKNOWN` if not known


def references_of(function: Callable[..., Any]) -> Iterator[Reference]:
    """Yield the references of `function` and of the functions that it refers to, nearest first."""
    waiting: list[Any] = [function]
    seen: set[types.CodeType] = set()
    while waiting and len(seen) < MAX_FUNCTIONS:
        called = called_by(waiting.pop(0))
        if called is None or called.function.__code__ in seen:
            continue
        seen.add(called.function.__code__)
        for reference in Source(called).references():
            yield reference
            if reference.whole and callable(reference.value):
                waiting.append(reference.value)


def may_reach(function: Callable[..., Any], kind: type) -> bool:
    """Return whether names in the code that `function` runs may refer to an object of a class.

    It is faster than `references_of`, as it reads no source.
    """
    waiting: list[Any] = [function]
    seen: set[types.CodeType] = set()
    while waiting and len(seen) < MAX_FUNCTIONS:
        called = called_by(waiting.pop(0))
        if called is None or called.function.__code__ in seen:
            continue
        seen.add(called.function.__code__)
        names = set(itertools.chain(*(x.co_names for x in _codes(called.function.__code__))))
        variables = called.function.__globals__
        values = [*closure_of(called.function).values(), *called.known.values()]
        values += [variables[name] for name in names & variables.keys()]
        values += [attribute(value, name) for value in values for name in names]
        if any([issubclass(type(value), kind) for value in values]):
            return True
        waiting += filter(callable, values)
    return False


class Source:
    """A Python function's source, with the values that names in it have before it runs.

    Args:
        called: the function.
        leading: the number of leading parameters that it may write into.
        wrapped: whether a decorator calls it, which may pass copies of the arguments.

    Attributes:
        nodes: its syntax tree, a parent before its children; empty without source.
    """

    def __init__(self, called: Called, leading: int = 0, *, wrapped: bool = False) -> None:
        function, known, receiver = called
        self._code = code = function.__code__
        self.nodes = _nodes_of(code)
        self._local: set[str] = set()  # what it assigns, also in functions inside it
        for each in _codes(code):
            is_class = not each.co_flags & inspect.CO_OPTIMIZED
            self._local.update(each.co_varnames, each.co_cellvars, each.co_names * is_class)
        self._assigned: dict[str, Any] = {}  # the expression that is assigned to a name
        self._looked_up: set[str] = set()  # ``CACHE`` in ``key in CACHE``, ``CACHE.get(key)``
        self._made_once: set[tuple[str, int]] = set()  # ``MODEL``, line below ``if MODEL is None``
        self._bound: collections.Counter[str] = collections.Counter()  # times, not as parameter
        imported = self._read()
        self._given = {key: value for key, value in known.items() if not self._bound[key]}
        self._given |= {key: value for key, value in imported.items() if self._bound[key] == 1}
        outer: Any = closure_of(function), function.__globals__, vars(builtins)
        self._names = collections.ChainMap(self._given, *outer)
        self._receiver = receiver if receiver in self._given else ""
        parameters = () if wrapped else code.co_varnames[: code.co_argcount]
        self._arguments = {
            name
            for name in parameters[leading + bool(receiver) :]
            if name not in known and not self._bound[name]
        }

    def _read(self) -> dict[str, Any]:
        """Read what names are assigned to and which are looked up; return what is imported."""
        imported = {}
        added = {id(node.target) for node in self.nodes if isinstance(node, ast.AugAssign)}
        for node in self.nodes:
            match node:
                case ast.Name(id=name, ctx=ast.Store()):
                    self._bound[name] += id(node) not in added
                case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                    self._bound[name] += 1
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assigned[name] = value
                case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                    module = sys.modules.get(getattr(node, "module", None) or "", UNKNOWN)
                    for alias in aliases:
                        if isinstance(node, ast.ImportFrom):
                            name, value = alias.asname or alias.name, attribute(module, alias.name)
                        else:
                            name = alias.asname or alias.name.partition(".")[0]
                            value = sys.modules.get(alias.name if alias.asname else name, UNKNOWN)
                        imported[name] = value
                        self._bound[name] += 1
                case (
                    ast.If(test=ast.Compare(left=thing, ops=[ast.Is()]))
                    | ast.If(test=ast.UnaryOp(op=ast.Not(), operand=thing))
                ):
                    text, last = ast.unparse(thing), node.body[-1].end_lineno or 0
                    self._made_once |= {(text, line) for line in range(node.lineno, last + 1)}
                case (
                    ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[thing])
                    | ast.Attribute(value=thing, attr="get")
                ):
                    self._looked_up.add(ast.unparse(thing))
                case ast.Try(body=body, handlers=handlers):
                    if any(x.type and "KeyError" in ast.unparse(x.type) for x in handlers):
                        tried = itertools.chain(*map(ast.walk, body))
                        reads = [x.value for x in tried if isinstance(x, ast.Subscript)]
                        self._looked_up |= set(map(ast.unparse, reads))
        return imported

    def references(self) -> list[Reference]:
        """Return what it refers to by line, but not ``print`` in ``print(x, file=text)``."""
        return [
            Reference(text, value, *self._place(node), whole, bare_call, not self.nodes)
            for node, text, value, whole, bare_call in self._resolved
        ]

    @functools.cached_property
    def _resolved(self) -> list[tuple[Any, str, Any, bool, str]]:
        found: list[tuple[Any, str, Any]] = []
        beginnings, to_files, bare_calls = set(), set(), {}
        for node in self.nodes or self._chains_of_names():  # a parent before its children
            table = None  # of which the code may use any entry
            match node:
                case ast.Call(func=func, args=args, keywords=keywords):
                    if not keywords and all([_is_none(x) for x in args]):
                        bare_calls[id(func)] = ast.unparse(node)
                    if _file_of_print(node) is not None:
                        to_files.add(id(func))
                    match func:
                        case ast.Attribute(value=thing, attr="values" | "items"):
                            table = thing
                        case ast.Attribute(value=thing, attr="get") if args:
                            table = None if isinstance(args[0], ast.Constant) else thing
                case ast.Attribute(value=thing) | ast.Subscript(value=thing, slice=ast.Constant()):
                    beginnings.add(id(thing))
                case ast.Subscript(value=thing) | ast.For(iter=thing):
                    table = thing
                case ast.comprehension(iter=thing):
                    table = thing
            if isinstance(node, _REFERENCES) and id(node) not in to_files:
                value = self.value(node)
                if value is not UNKNOWN:
                    found.append((node, ast.unparse(node), value))
            if table is not None:
                for key, entry in itertools.islice(entries(self.value(table)).items(), MAX_ENTRIES):
                    item = ast.copy_location(ast.Subscript(table, ast.Constant(key)), table)
                    found.append((item, ast.unparse(item), entry))
        found.sort(key=lambda each: (each[0].lineno, each[0].end_lineno, each[0].end_col_offset))
        return [
            (node, text, value, id(node) not in beginnings, bare_calls.get(id(node), ""))
            for node, text, value in found
        ]

    def changes(self) -> list[Change]:
        """Return what it changes outside of itself, by line.

        Left out are caches, and what it makes once: it looks first whether they have a value. The
        object of a method may keep results, and begin to count anew in each call. Lists and named
        items of an argument, ``params["w"]``, are of this call alone.
        """
        found, begun = [], set()
        for node, target, thing, how in sorted(self._targets(), key=lambda each: each[0].lineno):
            owner, objects = self._owner(thing), tuple(self._objects(thing))
            text, whole = ast.unparse(target), ast.unparse(thing)
            is_kept = (text, node.lineno) in self._made_once or (
                how in (_GROWS, _SETS) and whole in self._looked_up
            )
            if owner == "argument":
                named = any(map(_is_text, ast.walk(target)))
                reported = how is not _GROWS and not named and not isinstance(target, ast.Attribute)
            elif owner == "object":
                if how in (_SETS, _FILLS) and not is_kept:
                    begun.add(text if how is _SETS else whole)
                grows = how is _GROWS and is_container(objects[0])
                reported = (how is _COUNTS or grows) and not (is_kept or {text, whole} & begun)
            else:
                reported = owner == "outside" and not is_kept
            if reported:
                sets_item = how is _SETS and isinstance(target, ast.Subscript)
                place, in_argument = self._place(node), owner == "argument"
                found.append(Change(text, *place, in_argument, sets_item, objects))
        return found

    def _targets(self) -> Iterator[tuple[Any, ast.expr, ast.expr, int]]:
        """Yield what may change something: statement or call, target, what of it changes, how."""
        nodes = self.nodes
        unused = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        for node, _, value, *_ in self._resolved:
            if isinstance(node, ast.Name) and issubclass(type(value), Iterator):
                if self._alias(node) is None:
                    yield node, node, node, _GROWS  # next(NUMBERS)
        for node in nodes:
            assigned: list[tuple[Any, ast.expr]] = []
            match node:
                case ast.Assign(targets=targets, value=value):
                    parts = itertools.chain(*(getattr(each, "elts", [each]) for each in targets))
                    assigned = [(part, value) for part in parts]
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    assigned = [(target, value)]
                case ast.AugAssign(target=ast.Name(id=name) as target, value=value):
                    adds_text = isinstance(value, ast.JoinedStr) or _is_text(value)
                    is_number = name in self._given and not is_container(self._given[name])
                    if not (adds_text if name in self._arguments else is_number):
                        yield node, target, target, _COUNTS
                case ast.AugAssign(target=ast.Subscript() | ast.Attribute() as target):
                    yield node, target, target.value, _COUNTS
                case ast.Delete(targets=[ast.Subscript(value=target)]):
                    yield node, target, target, _GROWS
                case ast.Call(
                    func=ast.Name(id="setattr") | ast.Attribute(attr="__setattr__"),
                    args=[thing, ast.Constant(value=str(name)), value],
                ):
                    assigned = [(ast.Attribute(thing, name), value)]
                case ast.Call(func=func, keywords=keywords):
                    match self._meaning(func):  # add = LOG.append
                        case ast.Attribute(value=target, attr=method):
                            how = _FILLS if method in _FILL else _GROWS
                            is_known = is_container(self.value(target)) and method in _GROW | _FILL
                            in_place = method in _FILL and id(node) in unused
                            if is_known or (in_place and self._owner(target) == "argument"):
                                yield node, target, target, how
                    outs = [keyword.value for keyword in keywords if keyword.arg == "out"]
                    yield from ((node, out, out, _FILLS) for out in outs)
                    file = _file_of_print(node)
                    if file is not None:
                        yield node, file, file, _GROWS
            for target, value in assigned:
                text, thing, how = ast.unparse(target), getattr(target, "value", target), _SETS
                get = text
                if isinstance(target, ast.Subscript):
                    index = ast.unparse(target.slice)
                    get = f"{ast.unparse(thing)}.get({index}"
                    how = _FILLS if index in (":", "...") else _SETS
                for part in ast.walk(self._meaning(value)):
                    if isinstance(part, ast.BinOp) and not isinstance(part.op, ast.BitOr):
                        old = [ast.unparse(self._meaning(x)) for x in (part.left, part.right)]
                        if any(x == text or x.startswith(get) for x in old):
                            how = _COUNTS  # n = n + 1
                yield node, target, thing, how

    def value(self, node: ast.AST | None) -> Any:
        """Return the value of an expression before the function runs, if that runs no code."""
        match node:
            case ast.Name(id=name) if name not in self._local or name in self._given:
                return self._names.get(name, UNKNOWN)
            case ast.Name():
                return self.value(self._alias(node))
            case ast.Attribute(value=thing, attr=name):
                found = self.value(thing)
                return UNKNOWN if found is UNKNOWN else attribute(found, name)
            case (
                ast.Subscript(value=thing, slice=ast.Constant(value=key))
                | ast.Call(
                    func=ast.Attribute(value=thing, attr="get"), args=[ast.Constant(key), *_]
                )
            ):
                return entries(self.value(thing)).get(key, UNKNOWN)
        return UNKNOWN

    def _alias(self, node: Any) -> ast.expr | None:
        """Return what a name stands for, if it is assigned once, and before `node`."""
        if isinstance(node, ast.Name) and self._bound[node.id] == 1:
            other = self._assigned.get(node.id)
            if other is not None and other.lineno < node.lineno and node.id in self._local:
                return other
        return None

    def _meaning(self, node: ast.expr) -> ast.expr:
        return self._alias(node) or node

    def _objects(self, thing: Any) -> Iterator[Any]:
        """Yield the value of an expression, then of what leads to it."""
        while thing is not None:
            yield self.value(thing)
            thing = getattr(thing, "value", None) or self._alias(thing)

    def _owner(self, thing: Any) -> str:
        """Return whose it is: an "argument", of the method's "object", "outside", or not known."""
        while isinstance(thing, ast.Subscript | ast.Attribute):
            thing = thing.value
        alias = self._alias(thing)
        if isinstance(alias, ast.Name) or (alias and self.value(alias) is not UNKNOWN):
            return self._owner(alias)
        name = getattr(thing, "id", "")
        if name in self._arguments:
            return "argument"
        if name == "" or (name in self._local and name not in self._given):
            return ""
        return "object" if name == self._receiver else "outside"

    def _chains_of_names(self) -> list[Any]:
        """Return what code without source refers to: ``jnp.linalg.norm``, ``SOLVERS['fast']``.

        The names in a code object are in the order of their first use. So an attribute follows its
        object, or another attribute of the same module; the latter is a guess, not made for JAX.
        """
        found: list[Any] = []
        for code in _codes(self._code):
            node: Any = None
            for name in (*self._given, *code.co_freevars, *code.co_names):
                before = getattr(node, "value", None)
                module = self.value(before)
                is_other = type(module) is types.ModuleType and module.__name__[:3] != "jax"
                owners: list[Any] = [node, before] if is_other else [node]
                for owner in owners:
                    if attribute(self.value(owner), name) is not UNKNOWN:
                        node = ast.Attribute(owner, name)
                        break
                else:
                    node = ast.Name(name)
                found.append(node)
                keys = [key for key in code.co_consts if key in entries(self.value(node))]
                found += [ast.Subscript(node, ast.Constant(key)) for key in keys]
        return [ast.fix_missing_locations(node) for node in reversed(found)]

    def _place(self, node: Any) -> tuple[str, int]:
        return self._code.co_filename, self._code.co_firstlineno - 1 + node.lineno


@functools.lru_cache(maxsize=128)
def _nodes_of(code: types.CodeType) -> list[Any]:
    """Return the syntax tree of a function's body; empty without source, or if it is ambiguous."""
    try:
        tree = _Plain().visit(ast.parse(textwrap.dedent(inspect.getsource(code))))
    except (OSError, SyntaxError, TypeError, ValueError, RecursionError, tokenize.TokenError):
        return []
    parameters = code.co_varnames[: code.co_argcount]
    found: list[Any] = [
        node.body if isinstance(node.body, list) else [node.body]
        for node in (ast.walk(tree) if code.co_name == "<lambda>" else tree.body)
        if isinstance(node, ast.Lambda if code.co_name == "<lambda>" else ast.FunctionDef)
        and tuple(each.arg for each in node.args.posonlyargs + node.args.args) == parameters
    ]
    return [node for part in found[0] for node in ast.walk(part)] if len(found) == 1 else []


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yield a code object, and those of the functions, classes and comprehensions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


class _Plain(ast.NodeTransformer):
    """Write ``getattr(a, "b")`` and ``hasattr(a, "b")`` as ``a.b``."""

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        match node:
            case ast.Call(
                func=ast.Name(id="getattr" | "hasattr"), args=[thing, ast.Constant(str(name)), *_]
            ):
                return ast.copy_location(ast.Attribute(thing, name), node)
        return node


def _file_of_print(node: ast.Call) -> ast.expr | None:
    """Return the file that a call of print writes to, if the call names one."""
    is_print = isinstance(node.func, ast.Name) and node.func.id == "print"
    files = [x.value for x in node.keywords if x.arg == "file"] if is_print else []
    return files[0] if files else None


def is_container(value: Any) -> bool:
    """Return whether a value is a list, a dict, an array or the like, whatever its class says."""
    return issubclass(type(value), _CONTAINERS)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
