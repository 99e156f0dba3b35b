"""Find by ast what `jax_compat` uses of JAX: names, parameters of functions, functions by frame.

Values are followed through assignments, `getattr`, loops over constants, and calls within a module.
An argument is known to be an object of one of JAX's classes if its annotation is an alias such as
``Annotated[Any, "jax._src.interpreters.mlir.LoweringRuleContext"]``.
"""

from __future__ import annotations

import ast
from collections import ChainMap
from pathlib import Path
from typing import Any, NamedTuple

COMPAT = Path(__file__).parents[2] / "jupyter_jaxcb" / "stack" / "jax_compat"
REQUIRED = "_required.py"  # without what this module uses, the import fails
DEPTH = 12  # calls to follow


class Call(NamedTuple):
    """The arguments that a use passes, or that a replacement expects."""

    positional: int
    keywords: tuple[str, ...]
    is_complete: bool  # no ``*args`` and no ``**kwargs``


class Replacement(NamedTuple):
    """The parameters of a function that replaces one of JAX's."""

    positional: tuple[str, ...]
    keywords: tuple[str, ...]


class Frame(NamedTuple):
    """A function that is recognized by its frames, and a variable that is read there."""

    name: str
    variable: str


class Annotation(NamedTuple):
    """A class that only an annotation names, which does nothing when it runs."""


class Use(NamedTuple):
    """One use of JAX."""

    path: str  # "jax._src.mesh.use_abstract_mesh"; a module for a `Frame`
    file: str
    line: int
    column: int  # of the name, constant or alias that names it
    how: Call | Replacement | Frame | Annotation | None = None

    @property
    def is_required(self) -> bool:
        return self.file == REQUIRED


class Place(NamedTuple):
    """A value that is JAX's, by its path."""

    path: str


class Constant(NamedTuple):
    """A constant, and the node in which it is written."""

    value: Any
    node: ast.AST


class Local(NamedTuple):
    """A function of `jax_compat`."""

    node: ast.FunctionDef | ast.Lambda
    names: ChainMap[str, list]


Values = list[Place | Constant | Local]


def uses() -> list[Use]:
    """Return the uses of private JAX in `jax_compat`, each place and way once."""
    reader = _Reader()
    for file in sorted(COMPAT.glob("*.py")):
        reader.module(file.stem)
    return sorted(reader.found, key=lambda use: (use.file, use.line, use.column, use.path))


class _Reader:
    """Reads modules of `jax_compat`."""

    def __init__(self) -> None:
        self.found: set[Use] = set()
        self._modules: dict[str, ChainMap[str, list]] = {}
        self._depth = 0

    def module(self, name: str) -> ChainMap[str, list]:
        """Read a module; return the values of its names."""
        if name not in self._modules:
            names = self._modules[name] = ChainMap({})
            tree = ast.parse((COMPAT / f"{name}.py").read_text("utf-8"))
            for node in ast.walk(tree):
                node.file = f"{name}.py"  # type: ignore
            self._run(tree.body, names)
            for value in [one for values in list(names.values()) for one in values]:
                if isinstance(value, Local):
                    self._enter(value, {})
        return self._modules[name]

    def _note(self, path: str, node: Any, how: Any = None) -> None:
        if path.startswith(("jax._src.", "jax.interpreters.", "jax.extend.")):
            self.found.add(Use(path, node.file, node.lineno, node.col_offset, how))

    # Statements

    def _run(self, body: list[ast.stmt], names: ChainMap[str, list]) -> Values:
        """Run every statement, whatever its conditions; return what the block returns."""
        returned: Values = []
        for statement in body:
            run = getattr(self, f"_run_{type(statement).__name__.lower()}", self._run_other)
            returned += run(statement, names) or []
        return returned

    def _run_other(self, statement: ast.stmt, names: ChainMap[str, list]) -> Values:
        returned: Values = []
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.stmt):
                returned += self._run([child], names)
            elif isinstance(child, ast.ExceptHandler):
                returned += self._run(child.body, names)
            elif isinstance(child, ast.withitem):
                self._values(child.context_expr, names)
            elif isinstance(child, ast.expr):
                self._values(child, names)
        return returned

    def _run_return(self, statement: ast.Return, names: ChainMap[str, list]) -> Values:
        return self._values(statement.value, names) if statement.value else []

    def _run_import(self, statement: ast.Import, names: ChainMap[str, list]) -> None:
        for alias in statement.names:
            if alias.name.partition(".")[0] == "jax":
                names["jax"] = [Place("jax")]

    def _run_importfrom(self, statement: ast.ImportFrom, names: ChainMap[str, list]) -> None:
        for alias in statement.names:
            name = alias.asname or alias.name
            if statement.level == 1 and statement.module:
                names[name] = self.module(statement.module).get(alias.name, [])
            elif (statement.module or "").partition(".")[0] == "jax":
                names[name] = [Place(f"{statement.module}.{alias.name}")]
                self._note(names[name][0].path, alias)

    def _run_assign(self, statement: ast.Assign, names: ChainMap[str, list]) -> None:
        values = self._values(statement.value, names)
        for target in statement.targets:
            self._bind(target, values, names)

    def _run_annassign(self, statement: ast.AnnAssign, names: ChainMap[str, list]) -> None:
        values = self._values(statement.value, names) if statement.value else []
        known = self._annotated(statement.annotation, names)
        self._bind(statement.target, known or values, names)

    def _run_for(self, statement: ast.For, names: ChainMap[str, list]) -> Values:
        returned: Values = []
        before, after = dict(names.maps[0]), {}
        for item in self._items(statement.iter, names):
            self._bind(statement.target, item, names, replace=True)
            returned += self._run(statement.body, names)
            after |= names.maps[0]
            names.maps[0] = dict(before)
        names.maps[0] = after
        return returned + self._run(statement.orelse, names)

    def _run_functiondef(self, statement: ast.FunctionDef, names: ChainMap[str, list]) -> None:
        for decorator in statement.decorator_list:
            if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "functools.wraps":
                arguments = statement.args
                how = Replacement(
                    tuple(one.arg for one in arguments.args),
                    tuple(one.arg for one in arguments.kwonlyargs),
                )
                for value in self._values(decorator.args[0], names):
                    if isinstance(value, Place):
                        self._note(value.path, statement, how)
        local = Local(statement, names)
        names[statement.name] = [local]
        if len(names.maps) > 1:  # inner functions are not looked up by others
            self._enter(local, {})

    def _run_classdef(self, statement: ast.ClassDef, names: ChainMap[str, list]) -> None:
        for base in statement.bases:
            self._values(base, names)
        for inner in statement.body:
            if isinstance(inner, ast.FunctionDef):
                self._enter(Local(inner, names), {})
            else:
                self._run([inner], names.new_child())

    def _bind(
        self, target: ast.expr, values: Values, names: ChainMap[str, list], replace: bool = False
    ) -> None:
        if isinstance(target, ast.Name):
            before = [] if replace else names.get(target.id, [])
            names[target.id] = [*before, *(one for one in values if one not in before)]
        elif isinstance(target, ast.Tuple):
            for value in values:
                self._unpack(target.elts, value, names, replace)
        else:
            self._values(target, names)

    def _unpack(
        self, targets: list[ast.expr], value: Any, names: ChainMap[str, list], replace: bool
    ) -> None:
        if not isinstance(value, Constant) or not isinstance(value.value, tuple):
            return
        for target, part in zip(targets, value.value, strict=True):
            self._bind(target, [part], names, replace)

    # Expressions

    def _values(self, node: ast.expr, names: ChainMap[str, list]) -> Values:
        """Return the values that an expression may have, and note what it uses."""
        evaluate = getattr(self, f"_values_{type(node).__name__.lower()}", None)
        if evaluate is not None:
            return evaluate(node, names)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self._values(child, names)
            elif isinstance(child, ast.keyword):
                self._values(child.value, names)
        return []

    def _values_name(self, node: ast.Name, names: ChainMap[str, list]) -> Values:
        return list(names.get(node.id, []))

    def _values_constant(self, node: ast.Constant, names: ChainMap[str, list]) -> Values:
        return [Constant(node.value, node)]

    def _values_tuple(self, node: Any, names: ChainMap[str, list]) -> Values:
        items = [self._values(item, names) for item in node.elts]
        return [Constant(tuple(item[0] for item in items), node)] if all(items) else []

    _values_list = _values_set = _values_tuple

    def _values_ifexp(self, node: ast.IfExp, names: ChainMap[str, list]) -> Values:
        self._values(node.test, names)
        return self._values(node.body, names) + self._values(node.orelse, names)

    def _values_boolop(self, node: ast.BoolOp, names: ChainMap[str, list]) -> Values:
        return [one for value in node.values for one in self._values(value, names)]

    def _values_joinedstr(self, node: ast.JoinedStr, names: ChainMap[str, list]) -> Values:
        text, origin = "", node
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            (value, *_) = [*self._values(inner, names), None]
            if not isinstance(value, Constant):
                return []
            text, origin = text + str(value.value), value.node
        return [Constant(text, origin)]

    def _values_subscript(self, node: ast.Subscript, names: ChainMap[str, list]) -> Values:
        aliases = self._annotated(node, names)
        self._values(node.value, names), self._values(node.slice, names)
        return aliases

    def _values_lambda(self, node: ast.Lambda, names: ChainMap[str, list]) -> Values:
        self._enter(Local(node, names), {})
        return []

    def _values_listcomp(self, node: Any, names: ChainMap[str, list]) -> Values:
        inner = names.new_child()
        for generator in node.generators:
            for item in self._items(generator.iter, inner):
                self._bind(generator.target, item, inner)
            for condition in generator.ifs:
                self._values(condition, inner)
        for field in ("elt", "key", "value"):
            if hasattr(node, field):
                self._values(getattr(node, field), inner)
        return []

    _values_generatorexp = _values_setcomp = _values_dictcomp = _values_listcomp

    def _values_compare(self, node: ast.Compare, names: ChainMap[str, list]) -> Values:
        """Note also ``"name" in vars(x)`` and ``"field" in Class.__dataclass_fields__``."""
        left, *right = [self._values(one, names) for one in (node.left, *node.comparators)]
        places = [one for one in right[0] if isinstance(one, Place)]
        for owner in places if ast.unparse(node.comparators[0]).startswith("vars(") else ():
            left = [self._attribute(owner, name.value, name.node) for name in left]
        for owner in places:
            if owner.path.endswith(".__dataclass_fields__"):
                kind = Place(owner.path.removesuffix(".__dataclass_fields__") + "()")
                left = [self._attribute(kind, name.value, name.node) for name in left]
        return []

    def _values_attribute(self, node: ast.Attribute, names: ChainMap[str, list]) -> Values:
        found = [one for one in self._values(node.value, names) if isinstance(one, Place)]
        # The last character of an attribute is that of its name.
        return [self._attribute(one, node.attr, _end(node)) for one in found]

    def _attribute(self, owner: Place, name: str, node: Any) -> Place:
        path = f"{owner.path}.{name}"
        if name not in ("__name__", "__dataclass_fields__"):  # every class and dataclass has these
            self._note(path, node)
        return Place(path)

    def _values_call(self, node: ast.Call, names: ChainMap[str, list]) -> Values:
        functions = self._values(node.func, names)
        arguments = [self._values(one, names) for one in node.args]
        keywords = {one.arg: self._values(one.value, names) for one in node.keywords}
        if isinstance(node.func, ast.Call):
            if ast.unparse(node.func.func) == "operator.attrgetter":
                return self._got(node.func.args, arguments[0], names)
        name = ast.unparse(node.func)
        special = getattr(self, f"_call_{name.replace('.', '_').lower()}", None)
        if special is not None:
            return special(node, arguments)
        if name.endswith(".split"):
            return _split(self._values(node.func.value, names), arguments)  # type: ignore
        returned: Values = []
        for function in functions:
            if isinstance(function, Local):
                returned += self._enter(function, _arguments(function, arguments, keywords))
            elif isinstance(function, Place):
                self._note(function.path, node, _call(node))
                returned.append(Place(f"{function.path}()"))
        return returned

    def _call_getattr(self, node: ast.Call, arguments: list[Values]) -> Values:
        return [
            self._attribute(owner, str(name.value), name.node)
            for owner in arguments[0]
            for name in arguments[1]
            if isinstance(owner, Place) and isinstance(name, Constant)
        ]

    _call_hasattr = _call_setattr = _call_getattr

    def _call_importlib_import_module(self, node: ast.Call, arguments: list[Values]) -> Values:
        places = []
        for name in arguments[0]:
            if isinstance(name, Constant):
                self._note(name.value, name.node)
                places.append(Place(name.value))
        return places

    def _call_vars(self, node: ast.Call, arguments: list[Values]) -> Values:
        return arguments[0]

    def _call_type(self, node: ast.Call, arguments: list[Values]) -> Values:
        return [
            Place(f"{value.path}.__class__") for value in arguments[0] if isinstance(value, Place)
        ]

    def _call_in_module(self, node: ast.Call, arguments: list[Values]) -> Values:
        return self._call_importlib_import_module(node, arguments[1:])

    def _got(self, paths: list[ast.expr], owners: Values, names: ChainMap[str, list]) -> Values:
        """Return what ``operator.attrgetter(*paths)(owner)`` returns, for a single path."""
        found: Values = []
        for text in self._values(paths[0], names):
            for owner in owners:
                for name in text.value.split("."):
                    owner = self._attribute(owner, name, text.node)
                found.append(owner)
        return found

    _call_optional_module = _call_importlib_import_module

    def _call_jaxfunction(self, node: ast.Call, arguments: list[Values]) -> Values:
        module, name, *variable = [one.value for (one, *_) in arguments]  # type: ignore
        self._note(module, node.args[1], Frame(name, ""))
        if variable:
            self._note(module, node.args[2], Frame(name, variable[0]))
        return []

    # Functions

    def _enter(self, function: Local, known: dict[str, Values]) -> Values:
        """Read the body of a function whose parameters have the values `known`."""
        if self._depth > DEPTH:
            return []
        names = function.names.new_child()
        arguments = function.node.args
        for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            given = known.get(one.arg, [])
            names[one.arg] = given or self._annotated(one.annotation, names.parents)
        self._depth += 1
        try:
            if isinstance(function.node, ast.Lambda):
                return self._values(function.node.body, names)
            return self._run(function.node.body, names)
        finally:
            self._depth -= 1

    def _items(self, node: ast.expr, names: ChainMap[str, list]) -> list[Values]:
        """Return the values of each item of an iterable; one item without any if unknown."""
        items = [
            [item]
            for value in self._values(node, names)
            if isinstance(value, Constant) and isinstance(value.value, tuple)
            for item in value.value
        ]
        return items or [[]]

    def _annotated(self, node: ast.expr | None, names: ChainMap[str, list]) -> Values:
        """Return an object of the class of JAX that an annotation, or its alias, names."""
        if isinstance(node, ast.Name):
            return [one for one in names.get(node.id, []) if isinstance(one, Place)]
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Annotated":
            last = node.slice.elts[1]  # type: ignore
            if isinstance(last, ast.Constant) and str(last.value).startswith("jax."):
                self._note(last.value, last, Annotation())
                return [Place(f"{last.value}()")]
        return []


def _end(node: ast.Attribute) -> Any:
    """Return a node at the name of an attribute, which is the end of its expression."""
    at = ast.Name(node.attr)
    at.file, at.lineno = node.file, node.end_lineno  # type: ignore
    at.col_offset = node.end_col_offset - len(node.attr)  # type: ignore
    return at


def _split(texts: Values, arguments: list[Values]) -> Values:
    between = arguments[0][0].value if arguments and arguments[0] else None  # type: ignore
    return [
        Constant(tuple(Constant(part, text.node) for part in text.value.split(between)), text.node)
        for text in texts
        if isinstance(text, Constant)
    ]


def _call(node: ast.Call) -> Call:
    stars = [one for one in node.args if isinstance(one, ast.Starred)]
    names = tuple(one.arg for one in node.keywords if one.arg)
    complete = not stars and len(names) == len(node.keywords)
    return Call(len(node.args) - len(stars), names, complete)


def _arguments(
    function: Local, positional: list[Values], keywords: dict[str | None, Values]
) -> dict[str, Values]:
    arguments = function.node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
    return dict(zip(names, positional, strict=False)) | {k: v for k, v in keywords.items() if k}
