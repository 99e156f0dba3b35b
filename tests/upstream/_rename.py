"""Load `jax_compat` as if a JAX had renamed what it uses: with another name in its own source."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
from collections.abc import Iterable
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType
from typing import Any

from ._tree import Class, Instance, MissingError, Module, Tree
from ._uses import COMPAT, Frame, Use

PACKAGE = "jupyter_jaxcb.stack.jax_compat"


def names(tree: Tree, found: Iterable[Use]) -> dict[str, list[Use]]:
    """Return the private names that `found` relies on, each with all its uses.

    Only those that the source of JAX defines: what compiled code has is not a name of JAX's.
    """
    named: dict[str, list[Use]] = {}
    for use in found:
        if isinstance(use.how, Frame):
            name = f"{use.path}.{use.how.name}"
            named.setdefault(f"{name} {use.how.variable}".strip(), []).append(use)
        elif use.how is None and (name := defined(tree, use.path)) is not None:
            named.setdefault(name, []).append(use)
    return named


def defined(tree: Tree, path: str) -> str | None:
    """Return the name that `path` ends with, with its module or class.

    None if JAX has none, or if it is public: an attribute of a class of `jax.sharding`.
    """
    owner, _, last = path.rpartition(".")
    try:
        tree.find(path)
        found = tree.find(owner)
    except MissingError:  # of another version
        return None
    if isinstance(found, Instance):
        (found,) = [kind for kind in found.classes if tree.has(kind, last)][:1]
    if isinstance(found, Class):
        if not last.startswith("_") and tree.has_public(found.node.name):
            return None
        return f"{found.module}.{found.node.name}.{last}"
    return path if isinstance(found, Module) else None


class _Renaming(ast.NodeTransformer):
    """Appends ``_gone`` to the names at the places of `uses`."""

    def __init__(self, uses: list[Use]) -> None:
        self._at = {(use.line, use.column): use for use in uses}

    def visit_alias(self, node: ast.alias) -> ast.alias:
        if (node.lineno, node.col_offset) in self._at:
            node.asname, node.name = node.asname or node.name, gone(node.name)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        place = node.end_lineno, (node.end_col_offset or 0) - len(node.attr)
        if place in self._at:
            node.attr = gone(node.attr)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        use = self._at.get((node.lineno, node.col_offset))
        if use is not None and isinstance(node.value, str):
            node.value = renamed(node.value, use)
        return node


def renamed(text: str, use: Use) -> str:
    """Return `text` with ``_gone`` after the name of `use`, which may be one of several."""
    last = use.path.removeprefix("jax._src.").removeprefix("jax.interpreters.")
    here = re.escape(last) if " " in text else ".*"
    return re.sub(rf"(?<![\w.]){here}(?!\w)", lambda found: gone(found[0]), text, count=1)


def gone(name: str) -> str:
    """Return a name that JAX does not have; a special method stays one."""
    return f"{name[:-2]}_gone__" if name.endswith("__") else f"{name}_gone"


class _Loader(SourceFileLoader):
    """Loads a module of `jax_compat` with names replaced, and never from a cache."""

    def __init__(self, name: str, path: str, uses: list[Use]) -> None:
        super().__init__(name, path)
        self._uses = uses

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = _Renaming(self._uses).visit(ast.parse(self.get_data(path)))
        return compile(ast.fix_missing_locations(tree), path, "exec")


class Hidden:
    """Finds the modules of `jax_compat` that use a name, and loads them with another name."""

    def __init__(self, uses: list[Use]) -> None:
        self._uses = uses

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, last = name.rpartition(".")
        here = [use for use in self._uses if use.file == f"{last}.py"]
        if package != PACKAGE or not here:
            return None
        file = str(Path(COMPAT) / f"{last}.py")
        return importlib.util.spec_from_file_location(name, file, loader=_Loader(name, file, here))


def hide(uses: list[Use]) -> None:
    """Hide what `uses` name from `jax_compat`, which must not have been imported."""
    assert PACKAGE not in sys.modules
    sys.meta_path.insert(0, Hidden(uses))  # type: ignore
