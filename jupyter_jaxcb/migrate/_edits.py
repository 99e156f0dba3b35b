"""Rewrite the imports and the dotted names of host_callback in a source, and nothing else."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ._uses import MODULE, NAME, OURS, Import, binds_jax, find_dotted, find_imports


class Edit(NamedTuple):
    """Replacement text for the characters from `start` to `end`."""

    start: int
    end: int
    text: str


class Text:
    """A source, which locates the nodes of its syntax tree."""

    def __init__(self, source: str) -> None:
        self.source = source
        # Lines as Python counts them: unlike str.splitlines, not split at form feeds.
        self.lines = io.StringIO(source, newline="").readlines()
        self._starts = [0]
        for line in self.lines:
            self._starts.append(self._starts[-1] + len(line))

    def span(self, node: ast.stmt | ast.expr | ast.alias | ast.arg) -> tuple[int, int]:
        """Return where `node` begins and ends, in characters."""
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self._offset(node.lineno, node.col_offset), self._offset(end_line, end_column)

    def of(self, node: ast.stmt | ast.expr | ast.alias) -> str:
        """Return the source of `node`."""
        start, end = self.span(node)
        return self.source[start:end]

    def indent(self, start: int) -> str | None:
        """Return the indentation before `start`; None if other text precedes it on the line."""
        before = self.source[self.source.rfind("\n", 0, start) + 1 : start].rpartition("\r")[2]
        return before if not before.strip() else None

    def newline(self, line: int) -> str:
        """Return the line ending of a line; if it has none, that of the first line."""
        for text in (self.lines[line - 1], self.lines[0]):
            end = text[len(text.rstrip("\r\n")) :]
            if end:
                return end
        return "\n"

    def at(self, line: int, column: int) -> int:
        """Return the offset of a line and a column in characters, as `tokenize` gives them."""
        return self._starts[line - 1] + column

    def _offset(self, line: int, utf8_column: int) -> int:
        before = self.lines[line - 1].encode()[:utf8_column].decode() if utf8_column else ""
        return self._starts[line - 1] + len(before)


def rewritten(source: str, tree: ast.AST, known: Mapping[str, str], jax_is_bound: bool) -> str:
    """Replace each import of host_callback in `source` by an import from jupyter_jaxcb.

    Args:
        source: the source of a module or a cell.
        tree: its syntax tree, in which magics may be replaced by ``pass``.
        known: the full names that names refer to, including names bound by earlier cells.
        jax_is_bound: whether an earlier cell binds the name ``jax``.
    """
    text = Text(source)
    edits = [edit for node, alias in find_imports(tree) for edit in _of_import(text, node, alias)]
    dotted = find_dotted(tree, known)
    edits += [Edit(*text.span(node), f"{OURS}.{NAME}") for node in dotted]
    edits += _of_package(text, tree, dotted, jax_is_bound)
    for edit in sorted(edits, reverse=True):
        source = source[: edit.start] + edit.text + source[edit.end :]
    return source


def _of_import(text: Text, node: Import, alias: ast.alias) -> Iterator[Edit]:
    if isinstance(node, ast.Import):
        if alias.asname:
            yield Edit(*_dotted_name(text, alias), f"{OURS}.{NAME}")
        return  # without a name: see `_of_package`
    if node.module == MODULE or len(node.names) == 1:
        start, end = _dotted_name(text, node)
        yield Edit(start, end, f"{OURS}.{NAME}" if node.module == MODULE else OURS)
        return
    start, _ = text.span(node)
    own = f"from {OURS} import {text.of(alias)}"
    indent = text.indent(start)
    after = "; " if indent is None else f"{text.newline(node.lineno)}{indent}"
    yield Edit(start, start, f"{own}{after}")
    yield _without(text, node.names, alias)


def _without(text: Text, names: list[ast.alias], alias: ast.alias) -> Edit:
    """Remove one of several names, with a comma."""
    place = names.index(alias)
    if place + 1 < len(names):
        return Edit(text.span(alias)[0], text.span(names[place + 1])[0], "")
    return Edit(text.span(names[place - 1])[1], text.span(alias)[1], "")


def _of_package(
    text: Text, tree: ast.AST, dotted: list[ast.Attribute], jax_is_bound: bool
) -> Iterator[Edit]:
    """Rewrite ``import jax.experimental.host_callback``, or add an import for dotted uses.

    This import also binds the name ``jax``, which other code may use.
    """
    statement = binds_jax(tree)
    plain = [alias for _, alias in find_imports(tree) if alias.name == MODULE and not alias.asname]
    own = {id(part) for node in dotted for part in ast.walk(node)}
    others = any(
        isinstance(node, ast.Name) and node.id == "jax" and id(node) not in own
        for node in ast.walk(tree)
    )
    needs_jax = others and not (statement or jax_is_bound)
    for alias in plain:
        package = "jax.experimental, " if needs_jax else ""
        yield Edit(*text.span(alias), f"{package}{OURS}.{NAME}")
    if dotted and not plain and statement is not None:
        _, end = text.span(statement)
        indent = text.indent(text.span(statement)[0])
        before = "; " if indent is None else f"{text.newline(statement.lineno)}{indent}"
        yield Edit(end, end, f"{before}import {OURS}.{NAME}")


def _dotted_name(text: Text, node: Import | ast.alias) -> tuple[int, int]:
    """Return where the first dotted name in `node`, that of the module, begins and ends."""
    start, _ = text.span(node)
    lines = Text(text.of(node))
    first = last = None
    for token in tokenize.generate_tokens(io.StringIO(lines.source).readline):
        if token.type == tokenize.NAME and token.string in ("from", "import", "as") and first:
            break
        if not first and token.string == "from":
            continue
        if token.type in (tokenize.NAME, tokenize.OP):
            first, last = first or token.start, token.end
    assert first is not None and last is not None
    return start + lines.at(*first), start + lines.at(*last)
