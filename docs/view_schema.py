"""Generate the JSON Schema of a call site as front ends show it, and its page, from `SiteView`.

``python docs/view_schema.py`` writes the schema into the package, where the tests of both languages
read it.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
import json
import types
import typing
from pathlib import Path
from typing import Any

from from_code import fields, meanings, table, write

import jupyter_jaxcb
from jupyter_jaxcb.report import SCHEMA, SiteView
from jupyter_jaxcb.report.frontend._messages import CallbackView, ProgressView
from jupyter_jaxcb.report.frontend._site_view import MEASURED
from jupyter_jaxcb.report.text._headline import Part
from jupyter_jaxcb.report.text._phrases import TONES

PACKAGED = Path(jupyter_jaxcb.__file__).parent / "report" / "frontend" / "view.schema.json"
_TYPES = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0},
    float: {"type": "number", "minimum": 0},
    SiteView: {"$ref": "#"},
}
_BESIDE = (Part, CallbackView, ProgressView)  # what documents and messages have beside sites
_MINUS_ONE = {"type": "integer", "minimum": -1}
# Where the values of a field are fewer than those of its type, or more.
_SPECIAL = {
    "SiteView.consequence": {"enum": list(TONES)},
    "SiteView.sample_rows": {"type": "array", "items": _MINUS_ONE},
    "SiteView.first_element": _MINUS_ONE,
    "SampleView.element": _MINUS_ONE,
    "RunningView.element": _MINUS_ONE,
    "Part.tone": {"enum": list(dict.fromkeys(TONES.values()))},
}


def view_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `SiteView`, with what stands beside sites.

    ``measured`` marks the properties that the metadata of an output has; its data has the others.
    """
    kinds: dict[str, Any] = {}
    whole = _definition(SiteView, kinds)
    for kind in _BESIDE:
        _schema(kind, kinds)
    for name in MEASURED:
        whole["properties"][name]["measured"] = True
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SiteView",
        "version": SCHEMA,
        **whole,
        "$defs": kinds,
    }


def write_view(folder: Path) -> None:
    """Write ``view.schema.json`` and ``view.md`` to `folder`."""
    write(folder / "view.schema.json", schema_text())
    write(folder / "view.md", view_page())


def view_page() -> str:
    """Return the tables of the properties of a call site and of its variants."""
    schema = view_schema()
    parts = [_rows(schema)]
    for name, one in schema["$defs"].items():
        if name not in ("Status", "AxisKind", "Aval"):  # which recordings have, too
            parts.append(f"### {name}\n\n{one['description']}\n\n{_rows(one)}")
    return "\n\n".join(parts)


def _rows(schema: dict[str, Any]) -> str:
    if "prefixItems" in schema:
        rows = [(_words(one), one["description"]) for one in schema["prefixItems"]]
        return f"A list in this order:\n\n{table(('type', 'meaning'), rows)}"
    rows = [
        (f"`{name}`", _words(one), ("metadata: " if "measured" in one else "") + one["description"])
        for name, one in schema["properties"].items()
    ]
    return f"An object:\n\n{table(('key', 'type', 'meaning'), rows)}"


def _words(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return f"{_words(schema['anyOf'][0])} or null"
    if "$ref" in schema:
        if schema["$ref"] == "#":
            return "[call site](#a-call-site-in-a-front-end)"
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema:
        return "one of " + ", ".join(f"`{one}`" for one in schema["enum"])
    if schema["type"] == "array":
        inner = _words(schema["items"])
        return f"list of {inner}{'s' * inner.isalpha()}"
    return {"string": "text"}.get(schema["type"], schema["type"])


def schema_text() -> str:
    """Return the content of the file."""
    return json.dumps(view_schema(), indent=1, ensure_ascii=False) + "\n"


def _definition(kind: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    described = {"description": (inspect.getdoc(kind) or "").partition("\n\n")[0]}
    if issubclass(kind, enum.Enum):
        return described | {"enum": [member.value for member in kind]}
    hints, meaning = typing.get_type_hints(kind), meanings(kind)
    parts = {
        name: {
            **(
                _SPECIAL.get(f"{kind.__name__}.{name}")
                or _schema(_present(kind, name, hints[name]), kinds)
            ),
            "description": meaning[name],
        }
        for name in fields(kind)
    }
    if not dataclasses.is_dataclass(kind):
        items = {"prefixItems": list(parts.values()), "items": False, "minItems": len(parts)}
        return described | {"type": "array", **items}
    required = []
    for one in dataclasses.fields(kind):
        if one.default is dataclasses.MISSING:
            required.append(one.name)
        elif parts[one.name].get("anyOf") or one.default is not None:
            parts[one.name]["default"] = _default(one.default)
    return described | {
        "type": "object",
        "properties": parts,
        "required": required,
        "additionalProperties": False,
    }


def _default(value: Any) -> Any:
    """Return, as JSON, what a field has if its key is absent."""
    return list(value) if isinstance(value, tuple) else str(value) if value == "kept" else value


def _present(kind: Any, name: str, hint: Any) -> Any:
    """Return the type of a field without the None that stands for an absent key."""
    absent = kind is not SiteView and getattr(kind, name, ...) is None
    return typing.get_args(hint)[0] if absent else hint


def _schema(hint: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    if hint in _TYPES:
        return _TYPES[hint]
    if isinstance(hint, types.UnionType):
        inner = next(one for one in typing.get_args(hint) if one is not type(None))
        return {"anyOf": [_schema(inner, kinds), {"type": "null"}]}
    if typing.get_origin(hint) is tuple:
        return {"type": "array", "items": _schema(typing.get_args(hint)[0], kinds)}
    if hint.__name__ not in kinds:
        kinds[hint.__name__] = {}  # keeps the order in which they are found
        kinds[hint.__name__] = _definition(hint, kinds)
    return {"$ref": f"#/$defs/{hint.__name__}"}


if __name__ == "__main__":
    write(PACKAGED, schema_text())
