"""Find the uses of jax.experimental.host_callback in a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MODULE = "jax.experimental.host_callback"
PARENT, NAME = "jax.experimental", "host_callback"
OPTIONS = "jax_host_callback_"  # prefix of its options in jax.config

Import = ast.Import | ast.ImportFrom


class Use(NamedTuple):
    """One use of host_callback.

    Attributes:
        what: ``"import"``, ``"option"`` of jax.config, a name of the module such as ``"id_tap"``,
            or ``"host_callback"`` for the module itself.
        node: the statement, the call, or the expression that names it.
        is_statement: whether it is a call whose value is unused.
    """

    what: str
    node: ast.stmt | ast.expr
    is_statement: bool = False

    @property
    def line(self) -> int:
        """1-based."""
        return self.node.lineno


def find_uses(tree: ast.AST, known: Mapping[str, str]) -> list[Use]:
    """Return every use, in source order.

    Args:
        tree: the syntax tree of a module or a cell.
        known: the full names that names refer to, see `bound_names`; also those of earlier cells.
    """
    found = [Use("import", node) for node, _ in find_imports(tree)]
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node, what in _expressions(tree, known):
        use = called.get(id(node), node)
        found.append(Use(what, use, id(use) in alone))
    found += [Use("option", call) for call in called.values() if _sets_option(call)]
    return sorted(found, key=lambda use: (use.line, use.node.col_offset))


def bound_names(tree: ast.AST) -> dict[str, str]:
    """Return the names that imports bind to host_callback or its packages: ``{"hcb": MODULE}``."""
    bound: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                bound[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                bound[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return {name: full for name, full in bound.items() if _leads_there(full)}


def find_imports(tree: ast.AST) -> Iterator[tuple[Import, ast.alias]]:
    """Yield the statements that import the module, or from it, with the name that does so."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias) for alias in node.names if alias.name == MODULE)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module == MODULE:
                yield node, node.names[0]
            elif node.module == PARENT:
                yield from ((node, alias) for alias in node.names if alias.name == NAME)


def find_dotted(tree: ast.AST, known: Mapping[str, str]) -> list[ast.Attribute]:
    """Return the expressions ``jax.experimental.host_callback``."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and _full_name(node, known) == MODULE
    ]


def binds_jax(tree: ast.AST) -> ast.Import | None:
    """Return the first import that binds ``jax`` for something other than host_callback."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                is_jax = alias.name.partition(".")[0] == "jax" and not alias.asname
                if is_jax and alias.name != MODULE:
                    return node
    return None


def _leads_there(full: str) -> bool:
    return full == MODULE or MODULE.startswith(f"{full}.") or full.startswith(f"{MODULE}.")


def _expressions(tree: ast.AST, known: Mapping[str, str]) -> Iterator[tuple[ast.expr, str]]:
    """Yield the outermost expressions that refer to the module, with the name they use of it."""
    inside: set[int] = set()
    for node in ast.walk(tree):  # parents come before children
        if not isinstance(node, (ast.Attribute, ast.Name)) or id(node) in inside:
            continue
        full = _full_name(node, known)
        if full is None or not (full == MODULE or full.startswith(f"{MODULE}.")):
            continue
        inside |= {id(part) for part in ast.walk(node)}
        yield node, full.removeprefix(MODULE).strip(".").partition(".")[0] or NAME


def _full_name(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """Return ``jax.experimental.host_callback.id_tap`` for ``hcb.id_tap``; None if unrelated."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.insert(0, node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in known:
        return None
    return ".".join([known[node.id], *parts])


def _sets_option(call: ast.Call) -> bool:
    """Whether it is ``config.update("jax_host_callback_...", ...)``."""
    function, first = call.func, call.args[0] if call.args else None
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "update"
        and isinstance(first, ast.Constant)
        and isinstance(first.value, str)
        and first.value.startswith(OPTIONS)
    )
