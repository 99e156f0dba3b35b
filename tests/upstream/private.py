"""The table of JAX's private names, `private.txt`, and what `jax_compat` mentions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

COMPAT = Path(__file__).parents[2] / "jupyter_jaxcb" / "jax_compat"
TABLE = Path(__file__).with_suffix(".txt")
REQUIRED = "required"
_BETWEEN = re.compile(r", (?![^(]*\))")  # two names of a line, not two parameters


class Name(NamedTuple):
    """A private name of JAX, or a module of it."""

    module: str
    name: str  # "" for the module, "Class.attribute", or a function
    parameters: tuple[str, ...] | None  # as in the table
    is_frame: bool  # a function that is recognized by its frames
    files: tuple[str, ...]  # of `jax_compat`
    lost: str
    since: tuple[int, ...] = (0,)
    until: tuple[int, ...] = (99,)

    @property
    def path(self) -> str:
        return f"{self.module}.{self.name}".rstrip(".")

    @property
    def word(self) -> str:
        """The last part of the path, which `jax_compat` mentions."""
        return self.path.rpartition(".")[2]

    @property
    def is_required(self) -> bool:
        return self.lost == REQUIRED

    @property
    def is_compiled(self) -> bool:
        return self.module.startswith("jaxlib")

    def is_in(self, version: tuple[int, ...]) -> bool:
        return self.since <= version[:2] <= self.until


def names() -> list[Name]:
    """Read the table."""
    _, _, table = TABLE.read_text("utf-8").partition("\n\n")
    found, module = [], ""
    for line in table.splitlines():
        first, *columns = line.strip().split(" | ")
        if not line.startswith(" "):
            module = first
            found += [_row(module, "", False, *columns)] if columns else []
            continue
        is_frame, own = first.startswith("def "), first.removeprefix("def ")
        found += [_row(module, one, is_frame, *columns) for one in re.split(_BETWEEN, own)]
    return found


def _row(module: str, text: str, is_frame: bool, files: str, lost: str, limit: str = "") -> Name:
    name, _, inside = text.rstrip(")").partition("(")
    parameters = tuple(filter(None, inside.split(", "))) if "(" in text else None
    which, _, version = limit.partition(" ")
    limits = {which: tuple(map(int, version.split(".")))} if limit else {}
    return Name(module, name, parameters, is_frame, tuple(files.split()), lost, **limits)


def is_code(text: str) -> bool:
    """Return whether a string is a name, or has paths such as ``core.Primitive.bind state.d``."""
    many = r"\w+(\.\w+)+" if " " in text else r"[\w.]+"
    return all(re.fullmatch(many, one) for one in text.split()) and not text[:1].isdigit()
