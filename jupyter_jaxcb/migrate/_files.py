"""Read, analyze and rewrite Python files and notebooks."""

from __future__ import annotations

import ast
import dataclasses
import io
import json
import os
import tokenize
from pathlib import Path
from typing import Any

from ._edits import Text, rewritten
from ._notebook import parse, parse_cell, with_sources
from ._uses import Use, binds_jax, bound_names, find_uses


class MigrationError(Exception):
    """A file cannot be read or written; the message names it and says why."""


@dataclasses.dataclass(frozen=True)
class Part:
    """A module, or one cell of a notebook.

    Attributes:
        cell: index of the cell in the notebook, from 0; None: a module.
        source: the source text.
        tree: the syntax tree.
        known: the full names that names refer to, including names bound by earlier cells.
        jax_is_bound: whether an earlier cell binds the name ``jax``.
    """

    cell: int | None
    source: str
    tree: ast.Module
    known: dict[str, str]
    jax_is_bound: bool

    def uses(self) -> list[Use]:
        """Return every use of host_callback, in source order."""
        return find_uses(self.tree, self.known)

    def text(self) -> Text:
        """Return its source as a `Text`."""
        return Text(self.source)

    def rewritten(self) -> str:
        """Return its source with the imports rewritten."""
        return rewritten(self.source, self.tree, self.known, self.jax_is_bound)


@dataclasses.dataclass(frozen=True)
class Source:
    """A file that was read.

    Attributes:
        path: path of the file.
        text: its whole text.
        encoding: its encoding.
        parts: the Python code in it.
        problems: messages about cells that could not be parsed.
    """

    path: Path
    text: str
    encoding: str
    parts: list[Part]
    problems: list[str] = dataclasses.field(default_factory=list)

    def rewritten(self) -> str:
        """Return `text` with the imports of host_callback rewritten."""
        changed = {
            part.cell: new for part in self.parts if (new := part.rewritten()) != part.source
        }
        if not changed:
            return self.text
        if None in changed:
            return changed[None]
        return with_sources(self.text, {cell: s for cell, s in changed.items() if cell is not None})

    def uses(self) -> list[tuple[Part, Use]]:
        """Return every use of host_callback, with the part that it is in."""
        return [(part, use) for part in self.parts for use in part.uses()]

    def left(self) -> list[tuple[Part, Use]]:
        """Return the uses that `write` does not rewrite: options of jax.config, and strings."""
        return [one for one in self.uses() if one[1].what in ("option", "in a string")]

    def write(self) -> bool:
        """Rewrite the file; return whether there was something to rewrite.

        Raises:
            MigrationError: it cannot be written.
        """
        text = self.rewritten()
        if text == self.text:
            return False
        try:
            self.path.write_bytes(text.encode(self.encoding))
        except OSError as error:
            raise MigrationError(f"cannot write {self.path}: {error.strerror or error}.") from None
        return True


def read(path: str | os.PathLike[str]) -> Source:
    """Read a Python file, or a notebook if the suffix is ``.ipynb``.

    Raises:
        MigrationError: the file cannot be read, or is neither Python nor a notebook.

    >>> import pathlib, tempfile
    >>> from jupyter_jaxcb import migrate
    >>> path = pathlib.Path(tempfile.mkdtemp(), "model.py")
    >>> size = path.write_text("from jax.experimental import host_callback as hcb")
    >>> migrate.read(path).rewritten()
    'from jupyter_jaxcb import host_callback as hcb'
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise MigrationError(f"cannot read {path}: {error.strerror or error}.") from None
    return _notebook(path, data) if path.suffix == ".ipynb" else _module(path, data)


def files_in(path: str | os.PathLike[str]) -> list[Path]:
    """Return `path`, or if it is a folder, its Python files and notebooks that are not hidden."""
    path = Path(path)
    if not path.is_dir():
        return [path]
    found = [*path.rglob("*.py"), *path.rglob("*.ipynb")]
    hidden = (any(part.startswith(".") for part in file.relative_to(path).parts) for file in found)
    return sorted(file for file, is_hidden in zip(found, hidden, strict=True) if not is_hidden)


def _module(path: Path, data: bytes) -> Source:
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
        tree = parse(text)
    except SyntaxError as error:
        where = f", line {error.lineno}" if error.lineno else ""
        raise MigrationError(f"cannot read {path}{where}: {error.msg}.") from None
    except (UnicodeDecodeError, LookupError) as error:
        raise MigrationError(f"cannot read {path}: {error}.") from None
    return Source(path, text, encoding, [Part(None, text, tree, bound_names(tree), False)])


def _notebook(path: Path, data: bytes) -> Source:
    try:
        text = data.decode()
        notebook = json.loads(text)
    except ValueError as error:
        raise MigrationError(
            f"cannot read {path}: it is not a notebook, because it is not JSON: {error}."
        ) from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise MigrationError(
            f"cannot read {path}: it is not a notebook of nbformat 4, because it has no list of "
            "cells. To convert an older one, run jupyter nbconvert --to notebook --nbformat 4."
        )
    source = Source(path, text, "utf-8", [])
    known: dict[str, str] = {}
    jax_is_bound = False
    for number, cell in enumerate(cells):
        code = _code(cell)
        if code is None:
            continue
        try:
            tree = parse_cell(code)
        except SyntaxError as error:
            source.problems.append(
                f"{path}: skipped cell {number + 1}, line {error.lineno}: {error.msg}."
            )
            continue
        if tree is None:
            continue
        known |= bound_names(tree)
        source.parts.append(Part(number, code, tree, dict(known), jax_is_bound))
        jax_is_bound = jax_is_bound or binds_jax(tree) is not None
    return source


def _code(cell: Any) -> str | None:
    """Return the source of a code cell; None for other cells."""
    if not isinstance(cell, dict) or cell.get("cell_type") != "code":
        return None
    source = cell.get("source")
    if isinstance(source, list) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return source if isinstance(source, str) else None
