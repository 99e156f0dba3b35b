"""Read the source of a JAX by ast, without importing it."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

DEPTH = 20  # aliases to follow


class MissingError(Exception):
    """The source has no such name."""


class Module(NamedTuple):
    """A module of JAX."""

    name: str


class Function(NamedTuple):
    """A function or method."""

    node: ast.FunctionDef | ast.AsyncFunctionDef
    module: str
    is_method: bool


class Class(NamedTuple):
    """A class, in the module whose names it uses."""

    node: ast.ClassDef
    module: str


class Instance(NamedTuple):
    """An object of one of several classes."""

    classes: tuple[Class, ...]


class Compiled(NamedTuple):
    """Something whose source does not show what it has, as in C++."""


COMPILED = Compiled()
Found = Module | Function | Class | Instance | Compiled
Functions = (ast.FunctionDef, ast.AsyncFunctionDef)


class Tree:
    """The source of one JAX.

    Args:
        path: a checkout, a ``site-packages`` folder or the package ``jax`` itself.
    """

    def __init__(self, path: Path) -> None:
        places = (path, path / "jax")
        found = [place for place in places if (place / "_src").is_dir()]
        if not found:
            raise SystemExit(f"{path} has no source of JAX: name a folder that contains jax/_src.")
        self.root = found[0]
        self._parsed: dict[str, ast.Module | None] = {}

    def version(self) -> tuple[int, int]:
        """Return the version, as ``(0, 12)``."""
        (text,) = re.findall(r'^_version = "(\d+\.\d+)', self._read("jax.version"), re.M)
        major, minor = text.split(".")
        return int(major), int(minor)

    def find(self, path: str) -> Found:
        """Return what `path` names, such as ``jax._src.dispatch.runtime_tokens.clear``.

        ``()`` after a name is the value of a call, or an object of a class.

        Raises:
            MissingError: names the part that is missing.
        """
        found: Found = Module("jax")
        _, *parts = path.removesuffix("()").replace("()", ".()").split(".")
        parts += ["()"] if path.endswith("()") else []
        so_far = "jax"
        for part in parts:
            so_far += part if part == "()" else f".{part}"
            try:
                found = self.called(found) if part == "()" else self.attribute(found, part)
            except MissingError:
                raise MissingError(so_far) from None
        return found

    def functions_named(self, module: str, name: str) -> list[ast.FunctionDef]:
        """Return the functions of that name in a module, also methods and inner functions."""
        tree = self.parsed(module)
        nodes = () if tree is None else ast.walk(tree)
        return [node for node in nodes if isinstance(node, Functions) and node.name == name]

    def parsed(self, module: str) -> ast.Module | None:
        """Return the syntax tree of a module; None if there is no such file."""
        if module not in self._parsed:
            source = self._read(module)
            try:
                self._parsed[module] = ast.parse(source) if source is not None else None
            except SyntaxError as error:
                raise SystemExit(
                    f"Python {sys.version_info[0]}.{sys.version_info[1]} cannot read {module} in "
                    f"{self.root}: {error}. Run the canary with a newer Python."
                ) from None
        return self._parsed[module]

    def _read(self, module: str) -> str | None:
        place = self.root.joinpath(*module.split(".")[1:])
        files = (place.with_suffix(".py"), place / "__init__.py")
        source = next((file for file in files if file.is_file()), None)
        return source and source.read_text("utf-8")

    def attribute(self, owner: Found, name: str, depth: int = 0) -> Found:
        """Return the attribute `name` of `owner`."""
        if depth > DEPTH:
            return COMPILED
        if name == "__class__":
            return owner.classes[0] if isinstance(owner, Instance) else COMPILED
        if isinstance(owner, Module):
            return self._of_module(owner.name, name, depth + 1)
        if isinstance(owner, Class):
            return self._of_class(owner, name, depth + 1)
        if isinstance(owner, Instance):
            return self._of_instance(owner, name, depth + 1)
        return COMPILED

    def called(self, function: Found, depth: int = 0) -> Found:
        """Return what a call returns, as far as annotations say it."""
        if isinstance(function, Class):
            return Instance((function,))
        if isinstance(function, Function) and function.node.returns is not None:
            return self._annotated(function.node.returns, function.module, depth)
        return COMPILED

    def constructor(self, kind: Class) -> Found:
        """Return the ``__init__`` of a class, if its source shows one."""
        return self._of_class(kind, "__init__", 0) if self.has(kind, "__init__") else COMPILED

    def has_public(self, name: str) -> bool:
        """Return whether a class is part of `jax.sharding`, which is public."""
        try:
            return isinstance(self.find(f"jax.sharding.{name}"), Class)
        except MissingError:
            return False

    def has(self, kind: Class, name: str) -> bool:
        """Return whether objects of a class have an attribute."""
        try:
            self._of_class(kind, name, 0)
        except MissingError:
            return False
        return True

    def _of_module(self, module: str, name: str, depth: int) -> Found:
        tree = self.parsed(module)
        if tree is None:
            if (self.root.joinpath(*module.split(".")[1:])).is_dir() or module[:4] != "jax.":
                return COMPILED
            raise MissingError(module)
        if name in _removed(tree):
            raise MissingError(name)
        star = []
        for statement in statements(tree.body):
            if isinstance(statement, ast.ImportFrom) and statement.names[0].name == "*":
                star.append(_source(statement, module, self._is_package(module)))
            found = self._bound(statement, name, module, depth)
            if found is not None:
                return found
        if self.parsed(f"{module}.{name}") is not None:
            return Module(f"{module}.{name}")
        if self.root.joinpath(*module.split(".")[1:], name).is_dir():
            return Module(f"{module}.{name}")  # a namespace package
        return self._from_star(star, name, depth)

    def _from_star(self, modules: list[str], name: str, depth: int) -> Found:
        for module in modules:
            if not module.startswith("jax."):
                return COMPILED
            try:
                return self._of_module(module, name, depth)
            except MissingError:
                continue
        raise MissingError(name)

    def _bound(self, statement: ast.stmt, name: str, module: str, depth: int) -> Found | None:
        """Return what `statement` of `module` binds to `name`; None if it does not bind it."""
        if isinstance(statement, Functions) and statement.name == name:
            return Function(statement, module, is_method=False)
        if isinstance(statement, ast.ClassDef) and statement.name == name:
            return Class(statement, module)
        if isinstance(statement, ast.Import):
            for alias in statement.names:
                if (alias.asname or alias.name.partition(".")[0]) == name:
                    return self._imported(alias.name if alias.asname else name, "", depth)
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    source = _source(statement, module, self._is_package(module))
                    return self._imported(source, alias.name, depth)
        if isinstance(statement, ast.AnnAssign) and name in _names(statement.target):
            annotated = self._annotated(statement.annotation, module, depth)
            if not isinstance(annotated, Compiled) or statement.value is None:
                return annotated
            return self._value(statement.value, module, depth)
        if isinstance(statement, ast.Assign) and name in map(ast.unparse, statement.targets):
            return self._value(statement.value, module, depth)
        if isinstance(statement, ast.Assign) and name in _names(*statement.targets):
            return COMPILED
        return None

    def _imported(self, module: str, name: str, depth: int) -> Found:
        if module.partition(".")[0] != "jax":
            return COMPILED
        if name and self.parsed(f"{module}.{name}") is not None:
            return Module(f"{module}.{name}")
        return self.attribute(Module(module), name, depth) if name else Module(module)

    def _is_package(self, module: str) -> bool:
        return self.root.joinpath(*module.split(".")[1:], "__init__.py").is_file()

    def _value(self, node: ast.expr, module: str, depth: int) -> Found:
        """Return what an expression in `module` names or makes, as far as the source shows it."""
        try:
            if isinstance(node, ast.Name):
                return self._of_module(module, node.id, depth + 1) if depth < DEPTH else COMPILED
            if isinstance(node, ast.Attribute):
                return self.attribute(self._value(node.value, module, depth), node.attr, depth)
            if isinstance(node, ast.Call):
                return self.called(self._value(node.func, module, depth), depth)
        except MissingError:  # bound in a way that this reader does not know, or a builtin
            pass
        return COMPILED

    def _annotated(self, node: ast.expr, module: str, depth: int) -> Found:
        """Return an object of the classes that an annotation names."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self._annotated(ast.parse(node.value, mode="eval").body, module, depth)
        if isinstance(node, ast.BinOp):
            parts = [node.left, node.right]
        elif isinstance(node, ast.Subscript) and ast.unparse(node.value).endswith("Union"):
            parts = getattr(node.slice, "elts", [node.slice])
        else:
            found = self._value(node, module, depth)
            if isinstance(found, Compiled) and isinstance(node, ast.Name):
                return self._union_named(node.id, module, depth)
            return Instance((found,)) if isinstance(found, Class) else COMPILED
        kinds = [self._annotated(part, module, depth) for part in parts if not _is_none(part)]
        if all(isinstance(kind, Instance) for kind in kinds):
            return Instance(tuple(one for kind in kinds for one in kind.classes))  # type: ignore
        return COMPILED

    def _union_named(self, name: str, module: str, depth: int) -> Found:
        tree = self.parsed(module)
        for statement in statements(tree.body if tree else []):
            if isinstance(statement, ast.Assign) and name in map(ast.unparse, statement.targets):
                if isinstance(statement.value, ast.BinOp | ast.Subscript) and depth < DEPTH:
                    return self._annotated(statement.value, module, depth + 1)
        return COMPILED

    def _of_instance(self, owner: Instance, name: str, depth: int) -> Found:
        for kind in owner.classes:
            try:
                return self._of_class(kind, name, depth)
            except MissingError:
                continue
        raise MissingError(name)

    def _of_class(self, kind: Class, name: str, depth: int) -> Found:
        for statement in statements(kind.node.body):
            if isinstance(statement, Functions) and statement.name == name:
                decorators = {ast.unparse(one) for one in statement.decorator_list}
                if decorators & {"property", "functools.cached_property", "cached_property"}:
                    if statement.returns is None:
                        return COMPILED
                    return self._annotated(statement.returns, kind.module, depth)
                return Function(statement, kind.module, "staticmethod" not in decorators)
            found = self._bound(statement, name, kind.module, depth)
            if found is not None:
                return found
        if name in _set_on_self(kind.node) or name in _slots(kind.node):
            return COMPILED
        for base in kind.node.bases:
            try:
                return self._of_base(base, kind, name, depth)
            except MissingError:
                continue
        if any(isinstance(one, Functions) and one.name == "__getattr__" for one in kind.node.body):
            return COMPILED
        raise MissingError(name)

    def _of_base(self, base: ast.expr, kind: Class, name: str, depth: int) -> Found:
        base = base.value if isinstance(base, ast.Subscript) else base
        found = self._value(base, kind.module, depth)
        if isinstance(found, Class):
            return self.attribute(found, name, depth)
        standard = self._standard(ast.unparse(base), kind.module)
        if standard is not None and not hasattr(standard, name):
            raise MissingError(name)
        return COMPILED

    def _standard(self, base: str, module: str) -> object:
        """Return the class of Python's own that is called `base` in `module`, if it is one."""
        first, _, rest = base.partition(".")
        for statement in statements(self.parsed(module).body):  # type: ignore
            if isinstance(statement, ast.Import | ast.ImportFrom):
                for alias in statement.names:
                    if (alias.asname or alias.name) != first:
                        continue
                    package = getattr(statement, "module", None) or alias.name
                    if package.partition(".")[0] in sys.stdlib_module_names:
                        return getattr(importlib.import_module(package), rest or alias.name, None)
        return getattr(builtins, base, None)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a block and of the blocks in it, but not those of functions."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.Try | ast.With):
            inner = [*statement.body, *getattr(statement, "orelse", [])]
            for handler in getattr(statement, "handlers", []):
                inner += handler.body
            yield from statements(inner)


def _source(statement: ast.ImportFrom, module: str, is_package: bool) -> str:
    """Return the absolute name of the module from which `statement` imports."""
    if not statement.level:
        return statement.module or ""
    up = statement.level - is_package
    parents = module.split(".")[:-up] if up else module.split(".")
    return ".".join([*parents, *filter(None, [statement.module])])


def _names(*targets: ast.expr) -> set[str]:
    nodes = (node for target in targets for node in ast.walk(target))
    return {node.id for node in nodes if isinstance(node, ast.Name)}


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _removed(tree: ast.Module) -> set[str]:
    """Return the names whose deprecation is complete: the module's ``__getattr__`` refuses them."""
    found = set()
    for statement in statements(tree.body):
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        if "_deprecations" in _names(*targets) and isinstance(statement.value, ast.Dict):
            for key, value in zip(statement.value.keys, statement.value.values, strict=True):
                if isinstance(value, ast.Tuple) and _is_none(value.elts[1]):
                    found.add(getattr(key, "value", None))
    return found


@functools.cache
def _set_on_self(node: ast.ClassDef) -> frozenset[str]:
    """Return the attributes that the methods of a class set on their first argument."""
    return frozenset(
        attribute.attr
        for attribute in ast.walk(node)
        if isinstance(attribute, ast.Attribute)
        and isinstance(attribute.ctx, ast.Store)
        and isinstance(attribute.value, ast.Name)
        and attribute.value.id == "self"
    )


def _slots(node: ast.ClassDef) -> set[str]:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and "__slots__" in _names(*statement.targets):
            return {one.value for one in ast.walk(statement) if isinstance(one, ast.Constant)}
    return set()
