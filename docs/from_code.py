"""Generate the pages that come from the code: options of magics, the schema of a recording.

`conf.py` writes them to ``_generated`` before each build; `tests/documents` tests that they are
complete.
"""

from __future__ import annotations

import argparse
import dataclasses
import enum
import inspect
import re
import textwrap
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from IPython.core.magic import Magics

from jupyter_jaxcb.notebook.magics._callback import JaxMagics
from jupyter_jaxcb.notebook.magics._check import CheckMagics
from jupyter_jaxcb.notebook.magics._record import RecordMagics
from jupyter_jaxcb.notebook.magics._watch import WatchMagics
from jupyter_jaxcb.recording import SCHEMA, HostCall, Recording, _facts
from jupyter_jaxcb.recording._facts import ROW
from jupyter_jaxcb.stack.options import Refusal, refusals, refused_results, rows

MAGICS: tuple[type[Magics], ...] = (JaxMagics, RecordMagics, CheckMagics, WatchMagics)
FACTS = ("recording._facts", "recording._profile", "recording._vmap")  # modules
_WORDS = {int: "integer", str: "text", bool: "boolean"}
# Keys whose type in JSON differs from the annotation of `Recording`.
_SPECIAL = {
    "schema": ("integer", f"the number of the schema on this page: {SCHEMA}"),
    "environment": ("object of texts", None),
    "bound": ("list of pairs: [Site](#site), integer", None),
    "runs": ("list of pairs: [Program](#program), integer", None),
    "stale": ("list of integers", None),
    "calls": ("object of [columns](#columns)", "the host calls, one list for each column"),
}


def write_pages(folder: Path) -> None:
    """Write all generated pages to `folder`."""
    folder.mkdir(exist_ok=True)
    write(folder / "facts.md", facts_page())
    write(folder / "magics.md", magics_page())
    write(folder / "refused.md", refused_page())
    write(folder / "schema.md", schema_page())


def write(place: Path, text: str) -> None:
    """Write a file, unless it has this text already: Sphinx rebuilds pages of newer files."""
    if not place.exists() or place.read_text(encoding="utf-8") != text:
        place.write_text(text, encoding="utf-8")


# Options


def refused_page() -> str:
    """Return the table of the options that cannot be combined, and of those that need another."""
    pairs = [(f"`{row.one}`", f"`{row.other}`", _sentence(row)) for row in refusals]
    pairs += [
        (f"`{name}`", "a result", f"{reason[0].upper()}{reason[1:]}. {advice}")
        for name, (reason, advice) in refused_results.items()
    ]
    needs = [
        (f"`{name}`", f"`{row.needs}`", f"{row.why[0].upper()}{row.why[1:]}.")
        for name, row in rows()
        if row.needs
    ]
    refused = table(("option", "not with", "why"), pairs)
    return f"{refused}\n\n{table(('option', 'needs', 'why'), needs)}"


def _sentence(row: Refusal) -> str:
    return f"{row.reason[0].upper()}{row.reason[1:]}. {row.advice}".strip()


# Magics


def magics_page() -> str:
    """Return a section for each magic, with the options of its parser."""
    return "\n\n".join(_magic(name, function) for name, function in sorted(all_magics().items()))


def all_magics() -> dict[str, Any]:
    """Return the functions of all magics by name, without ``%``."""
    return {
        name: getattr(kind, method)
        for kind in MAGICS
        for names in kind.magics.values()
        for name, method in names.items()
    }


def percent(name: str) -> str:
    """Return a magic as a user types it, ``%%jax_callback``; line and cell form if it has both."""
    found = [
        prefix
        for kind in MAGICS
        for which, prefix in (("line", "%"), ("cell", "%%"))
        if name in kind.magics[which]
    ]
    return ", ".join(f"{prefix}{name}" for prefix in found)


def _magic(name: str, function: Any) -> str:
    first, _, rest = inspect.getdoc(_own(function)).partition("\n\n")
    parts = [f"## {percent(name)}", first.replace("\n", " ")]
    parser = getattr(function, "parser", None)
    if parser is not None:
        usage = " ".join(parser.format_usage().split()).partition(f"%{name}")[2]
        line = f"{percent(name).split(', ')[-1]}{usage}"
        shown = textwrap.fill(line, 72, subsequent_indent="    ", break_on_hyphens=False)
        rows = [_option(action) for action in parser._actions if action.dest != "help"]
        parts += [f"```text\n{shown}\n```", table(("option", "value", "meaning"), rows)]
    return "\n\n".join([*parts, rest]).strip()


def _own(function: Any) -> Any:
    """Return an object with the docstring from the source: `magic_arguments` adds options to it."""
    kept = inspect.unwrap(function)
    text = inspect.getdoc(kept) or ""
    written = re.search(rf'def {kept.__name__}\(.*?"""(.*?)"""', inspect.getsource(kept), re.DOTALL)
    stand = types.SimpleNamespace()
    stand.__doc__ = written[1] if written else text
    return stand


def _option(action: argparse.Action) -> tuple[str, str, str]:
    """Return the row of an option: its spelling, its values, its help."""
    names = ", ".join(f"`{name}`" for name in action.option_strings) or f"`{action.dest}`"
    if isinstance(action.metavar, tuple):
        values = " ".join(action.metavar)
    elif action.option_strings:
        values = "" if action.nargs == 0 else (action.metavar or action.dest.upper())
    else:
        values = {"*": "any number", "+": "one or more", "?": "one or none", None: "one"}[
            action.nargs
        ]
    # As code: Sphinx would join the two dashes of an option.
    return names, values, re.sub(r"(?<!\S)--[\w-]+", r"`\g<0>`", action.help or "")


# The recording


def reached() -> list[type]:
    """Return the classes of facts in a recording, each after the classes that refer to it."""
    found: list[type] = []

    def look(hint: Any) -> None:
        for part in typing.get_args(hint):
            look(part)
        if inspect.isclass(hint) and hint.__module__.endswith(FACTS):
            if hint not in found:
                found.append(hint)
                for name, inner in typing.get_type_hints(hint).items():
                    if name in fields(hint):
                        look(inner)

    for hint in typing.get_type_hints(Recording).values():
        look(hint)
    return found


def fields(kind: Any) -> list[str]:
    """Return the field names of a class of facts, in order; for an enumeration, its members."""
    if issubclass(kind, enum.Enum):
        return [member.name for member in kind]
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    return list(kind._fields)


def meanings(kind: Any) -> dict[str, str]:
    """Return the description of each field: the comment beside it, or its line in the docstring."""
    source = inspect.getsource(kind)
    beside = re.findall(r"^    (\w+)(?:: | = ).*?  # (.*)$", source, re.MULTILINE)
    text = (inspect.getdoc(kind) or "").partition("Attributes:\n")[2]
    listed = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return {name: " ".join(words.split()).removesuffix(".") for name, words in [*beside, *listed]}


def facts_page() -> str:
    """Return a section for each class of facts, with Python types."""
    return "\n\n".join(_class(kind) for kind in (*reached(), HostCall))


def _class(kind: Any) -> str:
    name = f"jupyter_jaxcb.recording.{kind.__name__}"
    meaning = meanings(kind)
    if issubclass(kind, enum.Enum):
        rows = [(f"`{one.name}`", f'`"{one.value}"`', meaning[one.name]) for one in kind]
    else:
        kinds = {one: str(hint) for one, hint in inspect.get_annotations(kind).items()}
        rows = [(f"`{one}`", f"`{kinds[one]}`", meaning[one]) for one in fields(kind)]
    own = [one for one, value in vars(kind).items() if one[0] != "_" and _has_docstring(value)]
    members = [f"   :members: {', '.join(own)}"] * bool(own)
    directive = "\n".join([f".. autoclass:: {name}()", *members])
    listed = table(("field", "type", "meaning"), rows)
    return f"## {kind.__name__}\n\n```{{eval-rst}}\n{directive}\n```\n\n{listed}"


def _has_docstring(value: Any) -> bool:
    return isinstance(value, property | types.FunctionType) and bool(value.__doc__)


def schema_page() -> str:
    """Return the description of a recording in JSON, field by field."""
    meaning_of = meanings(Recording)
    hints = typing.get_type_hints(Recording)
    rows = []
    for name in ("schema", *fields(Recording)):
        kind, meaning = _SPECIAL.get(name, (None, None))
        rows.append((f"`{name}`", kind or _words(hints[name]), meaning or meaning_of[name]))
    columns = [(f"`{name}`", f"`{ROW[name].name}`", _column(name)) for name in ROW.names or ()]
    parts = [
        table(("key", "type", "meaning"), rows),
        "## Columns",
        table(("key", "type", "meaning"), columns),
    ]
    return "\n\n".join([*parts, *_classes()])


def _column(name: str) -> str:
    beside = re.findall(r'\("(\w+)", "[^"]*"\),  # (.*)', inspect.getsource(_facts))
    return dict(beside).get(name) or meanings(HostCall)[name]


def _classes() -> Iterator[str]:
    for kind in reached():
        meaning = meanings(kind)
        first = (inspect.getdoc(kind) or "").partition("\n\n")[0]
        yield f"## {kind.__name__}\n\n{first}"
        if issubclass(kind, enum.Enum):
            yield table(
                ("text", "meaning"), [(f"`{one.value}`", meaning[one.name]) for one in kind]
            )
            continue
        form = "An object" if dataclasses.is_dataclass(kind) else "A list in this order"
        hints = typing.get_type_hints(kind)
        rows = [(f"`{name}`", _words(hints[name]), meaning[name]) for name in fields(kind)]
        yield f"{form}:\n\n{table(('field', 'type', 'meaning'), rows)}"


def _words(hint: Any) -> str:
    if hint in _WORDS:
        return _WORDS[hint]
    if isinstance(hint, types.UnionType):
        inner = next(one for one in typing.get_args(hint) if one is not type(None))
        return f"{_words(inner)} or null"
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return f"list of {_words(inner)}{'s' * (inner in _WORDS)}"
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Return a Markdown table."""
    lines = [[cell.replace("|", "\\|") for cell in row] for row in (head, *rows)]
    lines.insert(1, ["---"] * len(head))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
