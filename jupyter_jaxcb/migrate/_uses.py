"""Find the uses of host_callback, JAX's or ours, in a syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MODULE = "jax.experimental.host_callback"
PARENT, NAME = "jax.experimental", "host_callback"
OURS = "jupyter_jaxcb"
_MODULES = (MODULE, f"{OURS}.{NAME}")
OPTIONS = "jax_host_callback_"  # prefix of its options in jax.config

Import = ast.Import | ast.ImportFrom


class Use(NamedTuple):
    """One use of host_callback.

    Attributes:
        what: ``"import"``, ``"option"`` of jax.config, ``"in a string"``, a name of the module such
            as ``"id_tap"``, or ``"host_callback"`` for the module itself.
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
    own: set[int] = set()
    called = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node, what in _expressions(tree, known):
        use = called.get(id(node), node)
        found.append(Use(what, use, id(use) in alone))
        own |= {id(part) for part in ast.walk(node)}
    for call in called.values():
        if _sets_option(call) and id(call.func) not in own:
            found.append(Use("option", call))
            own |= {id(part) for part in ast.walk(call)}
        elif _sets_option(call):  # of our flags
            own.add(id(call.args[0]))
    found += [Use("option", node) for node in _options(tree) if id(node) not in own]
    found += [Use("in a string", node) for node in _strings(tree, called) if id(node) not in own]
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


def name_of_module(known: Mapping[str, str]) -> str | None:
    """Return the name under which the module is imported, such as ``"hcb"``; None: only others."""
    return next((name for name, full in known.items() if full in _MODULES), None)


def _leads_there(full: str) -> bool:
    return any(
        full == module or module.startswith(f"{full}.") or full.startswith(f"{module}.")
        for module in _MODULES
    )


def _options(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Yield ``jax.config.jax_host_callback_inline``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith(OPTIONS):
            yield node


def _strings(tree: ast.AST, called: Mapping[int, ast.Call]) -> Iterator[ast.Constant]:
    """Yield the strings that name the module or an option, but not docstrings."""
    texts = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    given = {id(argument) for call in called.values() for argument in call.args}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
            continue
        text = node.value
        names = MODULE in text or text.startswith(OPTIONS) or (text == NAME and id(node) in given)
        if names and id(node) not in texts:
            yield node


def _expressions(tree: ast.AST, known: Mapping[str, str]) -> Iterator[tuple[ast.expr, str]]:
    """Yield the outermost expressions that refer to the module, with the name they use of it."""
    inside: set[int] = set()
    for node in ast.walk(tree):  # parents come before children
        if not isinstance(node, (ast.Attribute, ast.Name)) or id(node) in inside:
            continue
        full = _full_name(node, known)
        module = next((m for m in _MODULES if f"{full}.".startswith(f"{m}.")), None)
        if full is None or module is None:
            continue
        inside |= {id(part) for part in ast.walk(node)}
        yield node, full.removeprefix(module).strip(".").partition(".")[0] or NAME


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
