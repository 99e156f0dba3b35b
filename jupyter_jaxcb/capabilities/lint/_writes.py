"""Find where the source of a function writes into its arguments or into outer objects."""

from __future__ import annotations

import ast
import enum
import inspect
import textwrap
import tokenize
import types
from collections.abc import Collection, Iterator
from typing import NamedTuple

# Methods that change an array in place. They return None, so each call is a statement.
_IN_PLACE = frozenset({"fill", "itemset", "partition", "put", "sort"})
# Methods that add to or write to an outer object; these calls are statements too.
_GROW = frozenset({"add", "append", "extend", "insert", "put", "update", "write", "writelines"})


class Write(enum.Enum):
    """The target of a write: an argument, or an object outside of the function."""

    ARGUMENT = enum.auto()
    OUTSIDE = enum.auto()


class Written(NamedTuple):
    """A write in the source of a function."""

    kind: Write
    what: str  # the target as written, ``x[0]``
    line: int  # in the file, from 1


def writes(function: types.FunctionType, leading: int, *, is_method: bool) -> Iterator[Written]:
    """Yield the places where `function` writes into its arguments or modifies outer objects.

    Two kinds of writes are allowed: assignment to one item of an outer object or of ``self``, which
    caches a result for the next call; and assignment to a named item of an argument,
    ``params["w"] = ...``, because each call gets its own dict.

    Args:
        function: the function whose source is read.
        leading: the number of leading parameters that it may write into.
        is_method: whether its first parameter is ``self``.
    """
    tree = tree_of(function)
    if tree is None:
        return
    first = function.__code__.co_firstlineno - 1
    names = _Names(function, tree, leading, is_method)
    for node, target in _targets(tree):
        base = base_of(target)
        if base is None:
            continue
        kind = names.written(node, target, base)
        if kind is not None:
            yield Written(kind, ast.unparse(target), first + node.lineno)


class _Names:
    """The roles of the names in the source of a function: parameter, local, receiver."""

    def __init__(
        self, function: types.FunctionType, tree: ast.FunctionDef, leading: int, is_method: bool
    ) -> None:
        added = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.AugAssign)}
        again = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Store)
            and id(node) not in added
        }
        listed = [*tree.args.posonlyargs, *tree.args.args]
        self._receiver = listed[0].arg if is_method and listed else None
        # Parameters with a default, or annotated as Python scalars, are not arrays.
        taken = listed[leading + is_method : len(listed) - len(tree.args.defaults)]
        self._parameters = {a.arg for a in taken if not _is_plain(a.annotation)} - again
        self._own = again | set(_named(tree))
        self._function = function

    def written(self, node: ast.AST, target: ast.expr, base: str) -> Write | None:
        """Return what `node` writes to; None if it is local to the function, or allowed."""
        if base in self._parameters:
            plain = isinstance(target, ast.Attribute) or _is_named(target) or _grows(node)
            return None if plain or _adds_text(node) else Write.ARGUMENT
        if isinstance(node, ast.AugAssign):
            counts = base not in self._own and not isinstance(target, ast.Name)
            return Write.OUTSIDE if counts or self._is_attribute(target, base) else None
        if base in self._own or self._is_module(base):
            return None
        if isinstance(node, ast.Assign):
            whole = isinstance(target, ast.Subscript) and _is_whole(target.slice)
            return Write.OUTSIDE if whole or isinstance(target, ast.Attribute) else None
        return Write.OUTSIDE

    def _is_attribute(self, target: ast.expr, base: str) -> bool:
        return base == self._receiver and isinstance(target, ast.Attribute)

    def _is_module(self, base: str) -> bool:
        return isinstance(self._function.__globals__.get(base), types.ModuleType | type)


def unseeded(function: types.FunctionType, makers: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the places where `function` creates a random number generator without a seed.

    Args:
        function: the function whose source is read.
        makers: the names, in its source, of the functions that create a generator.
    """
    tree = tree_of(function) if makers else None
    if tree is not None:
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and all(map(_is_none, node.args)) and not node.keywords:
                name = ast.unparse(node.func)
                if name in makers:
                    yield ast.unparse(node), function.__code__.co_firstlineno - 1 + node.lineno


def local_names(tree: ast.FunctionDef) -> set[str]:
    """Return the names that belong to a function: those that it assigns, and its parameters."""
    stored = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }
    shared = {
        name
        for node in ast.walk(tree)
        if isinstance(node, ast.Global | ast.Nonlocal)
        for name in node.names
    }
    return (stored - shared) | set(_named(tree))


def _named(tree: ast.FunctionDef) -> Iterator[str]:
    """Yield the names of parameters, functions, classes and imports in `tree`, also nested."""
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def tree_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """Return the syntax tree of `function`; None if its source is unknown, or for a lambda."""
    try:
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, SyntaxError, TypeError, ValueError, tokenize.TokenError):
        return None
    same = isinstance(tree, ast.FunctionDef) and tree.name == function.__code__.co_name
    return tree if same else None  # type: ignore[return-value]


def _targets(tree: ast.FunctionDef) -> Iterator[tuple[ast.stmt | ast.expr, ast.expr]]:
    """Yield the targets of assignments and in-place changes, each with its statement or call."""
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign):
            yield node, node.target
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                parts = target.elts if isinstance(target, ast.Tuple | ast.List) else [target]
                kinds = ast.Subscript | ast.Attribute
                yield from ((node, part) for part in parts if isinstance(part, kinds))
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            function = node.value.func
            if isinstance(function, ast.Attribute) and function.attr in _IN_PLACE | _GROW:
                yield node, function.value
        elif isinstance(node, ast.Call):
            yield from ((node, one.value) for one in node.keywords if one.arg == "out")


def base_of(target: ast.expr) -> str | None:
    """Return the name that a target starts with: ``x`` for ``x[0].real[1]``."""
    while isinstance(target, ast.Subscript | ast.Attribute):
        target = target.value
    return target.id if isinstance(target, ast.Name) else None


def _is_named(target: ast.expr) -> bool:
    while isinstance(target, ast.Subscript | ast.Attribute):
        if isinstance(target, ast.Subscript) and _is_text(target.slice):
            return True
        target = target.value
    return False


def _grows(node: ast.AST) -> bool:
    """Return whether it calls a method that arrays do not have, as on a list or dict."""
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    return getattr(node.value.func, "attr", "") not in _IN_PLACE


def _is_plain(annotation: ast.expr | None) -> bool:
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


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
