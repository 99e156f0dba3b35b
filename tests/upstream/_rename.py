"""Load `jax_compat` as if a JAX had renamed what it uses: with another name in its own source."""

from __future__ import annotations

import ast
import re
import sys
from importlib.machinery import SourceFileLoader
from types import CodeType

from .private import Name, is_code

PACKAGE = "jupyter_jaxcb.jax_compat"


class _Renaming(ast.NodeTransformer):
    """Appends ``_gone`` to a name, or to a variable of a function that its frames show.

    Attributes:
        count: how often it did.
    """

    def __init__(self, name: Name, variable: str = "") -> None:
        self.count, self._name, self._word = 0, name, variable or name.word
        self._is_attribute = bool(name.name) and not name.is_frame

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.module == self._name.path:
            node.module = self._gone(node.module)
        for alias in node.names:
            if f"{node.module}.{alias.name}" == self._name.path:
                alias.name, alias.asname = self._gone(alias.name), alias.asname or alias.name
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if self._is_attribute and node.attr == self._word:
            node.attr = self._gone(node.attr)
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if node.value in (self._word, self._name.path):
            node.value = self._gone(node.value)
        elif isinstance(node.value, str) and " " in node.value and is_code(node.value):
            word = rf"(?<!\w){re.escape(self._word)}(?!\w)"
            node.value = re.sub(word, lambda found: self._gone(found[0]), node.value)
        return node

    def _gone(self, name: str) -> str:
        """Return a name that JAX does not have; a special method stays one."""
        self.count += 1
        return f"{name[:-2]}_gone__" if name.endswith("__") else f"{name}_gone"


def hide(name: Name, variable: str = "") -> None:
    """Hide a name from `jax_compat`, which must not have been imported, in this process."""
    assert PACKAGE not in sys.modules
    original = SourceFileLoader.get_code

    def get_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
        package, _, last = fullname.rpartition(".")
        if package != PACKAGE or last not in name.files:
            return original(self, fullname)
        path, renaming = self.get_filename(fullname), _Renaming(name, variable)
        tree = renaming.visit(ast.parse(self.get_data(path)))
        assert renaming.count or variable, f"{last} does not use {name.path}"
        return compile(ast.fix_missing_locations(tree), path, "exec")

    SourceFileLoader.get_code = get_code
