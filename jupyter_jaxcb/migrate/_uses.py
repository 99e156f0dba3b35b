"""Where a module uses jax.experimental.host_callback, found in its syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MODULE = "jax.experimental.host_callback"
PARENT, NAME = "jax.experimental", "host_callback"
OPTIONS = "jax_host_callback_"  # what the names of its options in jax.config begin with

Import = ast.Import | ast.ImportFrom


class Use(NamedTuple):
    """One use of host_callback.

    Attributes:
        what: ``"import"``; ``"option"`` of jax.config; else a name of the module, ``"id_tap"``, or
            ``"host_callback"`` for the module itself.
        node: the statement, the call, or the expression that names it.
        is_statement: a call whose value nobody uses.
    """

    what: str
    node: ast.stmt | ast.expr
    is_statement: bool = False

    @property
    def line(self) -> int:
        """1-based."""
        return self.node.lineno


def find_uses(tree: ast.AST, known: Mapping[str, str]) -> list[Use]:
    """Every use, in the order of the source.

    Args:
        tree: of a module or a cell.
        known: what names stand for, see `bound_names`; also those of cells before.
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
    """The names that imports bind, where they lead to host_callback: ``{"hcb": MODULE}``."""
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
    """The statements that import the module, or from it, and by which of their names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node, alias) for alias in node.names if alias.name == MODULE)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if node.module == MODULE:
                yield node, node.names[0]
            elif node.module == PARENT:
                yield from ((node, alias) for alias in node.names if alias.name == NAME)


def find_dotted(tree: ast.AST, known: Mapping[str, str]) -> list[ast.Attribute]:
    """The expressions ``jax.experimental.host_callback``: the module through a package."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and _full_name(node, known) == MODULE
    ]


def binds_jax(tree: ast.AST) -> ast.Import | None:
    """The first statement that binds the name ``jax``, and not on behalf of host_callback."""
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
    """The largest expressions that name something of the module, and what."""
    inside: set[int] = set()
    for node in ast.walk(tree):  # from the outside in
        if not isinstance(node, (ast.Attribute, ast.Name)) or id(node) in inside:
            continue
        full = _full_name(node, known)
        if full is None or not (full == MODULE or full.startswith(f"{MODULE}.")):
            continue
        inside |= {id(part) for part in ast.walk(node)}
        yield node, full.removeprefix(MODULE).strip(".").partition(".")[0] or NAME


def _full_name(node: ast.expr, known: Mapping[str, str]) -> str | None:
    """``jax.experimental.host_callback.id_tap`` for ``hcb.id_tap``; None for other things."""
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
