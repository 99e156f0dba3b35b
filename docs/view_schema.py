"""Generate what describes the JSON for front ends, from the classes that have its keys.

``python docs/view_schema.py`` writes the JSON Schema into the package, and for the TypeScript front
end its types and a short form of the schema, along which it reads untrusted data.
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
from jupyter_jaxcb.report.frontend._documents import DOCUMENTS
from jupyter_jaxcb.report.frontend._site_view import MEASURED
from jupyter_jaxcb.report.summary._phrases import TONES

_PACKAGE = Path(jupyter_jaxcb.__file__).parent
_FRONT_END = _PACKAGE.parent / "labextension" / "src" / "view" / "data" / "parse"
_TYPES = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "minimum": 0},
    float: {"type": "number", "minimum": 0},
    Any: {},
    SiteView: {"$ref": "#"},
}
_WORDS = {  # whose values are not those of an enumeration in Python
    "Consequence": ("What matters most about calls: a problem, or else their status.", TONES),
    "Tone": ("How much a consequence matters.", ("error", "warning", "kept", "quiet")),
}
_MINUS_ONE = {"type": "integer", "minimum": -1}
_TIME = {"anyOf": [{"type": "integer"}, {"type": "null"}]}  # may be negative
# Where the values of a field are fewer than those of its type, or more.
_SPECIAL = {
    "SiteView.consequence": {"$ref": "#/$defs/Consequence"},
    "SiteView.sample_rows": {"type": "array", "items": _MINUS_ONE},
    "SiteView.first_element": _MINUS_ONE,
    "RunningView.element": _MINUS_ONE,
    "RunSiteView.consequence": {"$ref": "#/$defs/Consequence"},
    "Part.tone": {"$ref": "#/$defs/Tone"},
    "CompilationView.start_ns": _TIME,
    "ProfileView.start_ns": _TIME,
}
# How much the front end shows: characters of a text, entries of a list; of others 1,000.
_MOST_TEXT = dict.fromkeys(
    "function flavor where name program thread id cell cell_id numbered version method dtype"
    " sizes methods receives host count around stack threads excludes".split(),
    200,
) | {
    **dict.fromkeys(("errors", "text", "stacks"), 10_000),
    "codes": 20_000,
    **dict.fromkeys(("zlib", "crossings"), 64_000_000),
}
_MOST_ENTRIES = {
    **dict.fromkeys(("FactsView.sites", "ProgressView.sites"), 2_000),
    **dict.fromkeys(("SiteView.shapes", "SiteView.variants_ns"), 0xFFFF),
    **dict.fromkeys(("MeasuredView.threads", "MeasuredView.errors"), 0xFFFF),
    **dict.fromkeys(("SiteView.not_finite_rows", "SiteView.passed_on_rows"), 20_000),
    "FactsView.headline": 20,
    "MeasuredView.sites": 2_000,
    "ProfileView.parts": 2_000,
    "ProfileLaneView.spans": 600_000,
    "RunsView.runs": 20,
    "RunsView.codes": 20,
}


def view_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of `SiteView`, and of the documents with sites.

    ``measured`` marks the properties that the metadata of an output has; its data has the others.
    """
    kinds: dict[str, Any] = {}
    whole = _definition(SiteView, kinds)
    for kind in DOCUMENTS:
        _schema(kind, kinds)
    for name, (meaning, words) in _WORDS.items():
        kinds[name] = {"description": meaning, "enum": list(words)}
    for name in MEASURED:
        whole["properties"][name]["measured"] = True
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "SiteView",
        "version": SCHEMA,
        **whole,
        "$defs": kinds,
    }


def files() -> dict[Path, str]:
    """Return the content of each generated file that is not in ``_generated``."""
    schema = view_schema()
    definitions = {"SiteView": schema, **schema["$defs"]}
    return {
        _PACKAGE / "report" / "frontend" / "view.schema.json": _text(schema),
        _FRONT_END / "types.ts": _typescript(definitions),
        _FRONT_END / "documents.json": _documents(definitions),
    }


def write_view(folder: Path) -> None:
    """Write ``view.schema.json`` and ``view.md`` to `folder`."""
    write(folder / "view.schema.json", _text(view_schema()))
    write(folder / "view.md", view_page())


def view_page() -> str:
    """Return the tables of the properties of a call site, of its parts, and of documents."""
    schema = view_schema()
    parts = [_rows(schema)]
    for name, one in schema["$defs"].items():
        if "enum" not in one and name != "Aval":  # which recordings have, too
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
        if name in _WORDS:
            return "one of " + ", ".join(f"`{one}`" for one in _WORDS[name][1])
        return f"[{name}](#{name.lower()})"
    if schema.get("type") == "array":
        inner = _words(schema["items"])
        return f"list of {inner}{'s' * inner.isalpha()}"
    if "additionalProperties" in schema:
        return f"object of {_words(schema['additionalProperties'])}s"
    return {"string": "text", None: "anything"}.get(kind := schema.get("type"), kind)


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


# The schema


def _definition(kind: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    described = {"description": (inspect.getdoc(kind) or "").partition("\n\n")[0]}
    if issubclass(kind, enum.Enum):
        return described | {"enum": [member.value for member in kind]}
    hints = typing.get_type_hints(kind, include_extras=True)
    names = list(hints) if typing.is_typeddict(kind) else fields(kind)
    meaning = meanings(kind)
    parts = {
        name: {
            **(
                _SPECIAL.get(f"{kind.__name__}.{name}")
                or _schema(_present(kind, name, hints[name]), kinds)
            ),
            "description": meaning.get(name, "").replace("None:", "null:"),
        }
        for name in names
    }
    if hasattr(kind, "_fields"):
        named = [{"title": name} | part for name, part in parts.items()]
        items = {"prefixItems": named, "items": False, "minItems": len(parts)}
        return described | {"type": "array", **items}
    required = []
    for name, part in parts.items():
        if typing.is_typeddict(kind):
            needed = typing.get_origin(hints[name])
            if needed is typing.Required or (kind.__total__ and needed is not typing.NotRequired):
                required.append(name)
            else:
                part.update(_nothing(part))
        elif (default := kind.__dataclass_fields__[name].default) is dataclasses.MISSING:
            required.append(name)
        elif part.get("anyOf") or default is not None:
            part["default"] = _default(default)
    return described | {
        "type": "object",
        "properties": parts,
        "required": required,
        "additionalProperties": False,
    }


def _nothing(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the default of a key that is left out if it is empty, zero, false or null."""
    if "$ref" in schema:
        return {}
    empty = {"string": "", "integer": 0, "boolean": False, "array": [], "object": {}}
    return {"default": empty.get(schema.get("type", ""))}


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
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _schema(arguments[1], kinds)
    if origin in (typing.Required, typing.NotRequired):
        return _schema(arguments[0], kinds)
    if origin is types.UnionType:
        inner = next(one for one in arguments if one is not type(None))
        return {"anyOf": [_schema(inner, kinds), {"type": "null"}]}
    if origin in (tuple, list):
        return {"type": "array", "items": _schema(arguments[0], kinds)}
    if origin is dict:
        return {"type": "object", "additionalProperties": _schema(arguments[1], kinds)}
    if hint.__name__ not in kinds:
        kinds[hint.__name__] = {}  # keeps the order in which they are found
        kinds[hint.__name__] = _definition(hint, kinds)
    return {"$ref": f"#/$defs/{hint.__name__}"}


# The front end


def _name(reference: str) -> str:
    """Return the name of a class in TypeScript."""
    name = "SiteView" if reference == "#" else reference.rpartition("/")[2]
    known = {"SampleView": "SampleValues", "RunningView": "RunningCall", "PartKind": "KindId"}
    return known.get(name, name.removesuffix("View"))


def _typescript(definitions: dict[str, Any]) -> str:
    parts = ["/** The JSON that Python writes. Generated by docs/view_schema.py; do not edit. */"]
    for name, schema in definitions.items():
        parts.append(f"/** {schema['description'].replace('``', '`')} */")
        if "enum" in schema:
            parts[-1] += f"\nexport type {_name(name)} = {_type(schema)};"
        elif "prefixItems" in schema:
            hints = ", ".join(f"{one['title']}: {_type(one)}" for one in schema["prefixItems"])
            parts[-1] += f"\nexport type {_name(name)} = readonly [{hints}];"
        else:
            lines = [
                f"  readonly {key}{'' if _is_present(schema, key) else '?'}: {_type(one)};"
                + f" // {one['description']}".rstrip("/ ").replace("``", "`")
                for key, one in schema["properties"].items()
            ]
            parts[-1] += "\n".join([f"\nexport interface {_name(name)} {{", *lines, "}"])
    kinds = "".join(f"  {_name(kind.__name__)}: {_name(kind.__name__)};\n" for kind in DOCUMENTS)
    parts.append(f"/** What `conform` reads. */\nexport interface Documents {{\n{kinds}}}")
    return "\n\n".join(parts) + "\n"


def _is_present(schema: dict[str, Any], key: str) -> bool:
    return key in schema["required"] or "default" in schema["properties"][key]


def _type(schema: dict[str, Any]) -> str:
    if "anyOf" in schema:
        return f"{_type(schema['anyOf'][0])} | null"
    if "$ref" in schema:
        return _name(schema["$ref"])
    if "enum" in schema:
        return " | ".join(f"'{one}'" for one in schema["enum"])
    if schema.get("type") == "array":
        return f"readonly {_type(schema['items'])}[]"
    if "additionalProperties" in schema:
        return f"Readonly<Record<string, {_type(schema['additionalProperties'])}>>"
    names = {"integer": "number", None: "unknown"}
    return names.get(kind := schema.get("type"), kind)


def _documents(definitions: dict[str, Any]) -> str:
    """Return the schema without words, and with the limits of the front end."""
    lines = ",\n".join(
        f"{json.dumps(_name(name))}: {json.dumps(_short(schema, name), separators=(',', ':'))}"
        for name, schema in definitions.items()
    )
    return f"{{\n{lines}\n}}\n"


def _short(schema: dict[str, Any], place: str) -> dict[str, Any]:
    """Return what `conform` in TypeScript uses of a schema at a place, as ``SiteView.errors``."""
    if "anyOf" in schema:
        return _short(schema["anyOf"][0], place) | _picked(schema, "default") | {"nullable": True}
    if "$ref" in schema:
        return {"$ref": _name(schema["$ref"])} | _picked(schema, "default")
    if "enum" in schema:
        return _picked(schema, "enum")
    if "prefixItems" in schema:
        inner = [_short(one, f"{place}.{one['title']}") for one in schema["prefixItems"]]
        return {"type": "array", "prefixItems": inner}
    short = _picked(schema, "type", "default")
    if "properties" in schema:
        inner = {
            name: _short(one, f"{place}.{name}")
            | ({} if _is_present(schema, name) else {"optional": True})
            for name, one in schema["properties"].items()
        }
        return short | {"properties": inner}
    if "items" in schema:
        short["items"] = _short(schema["items"], place)
        return short | _limit(_MOST_ENTRIES.get(place))
    if "additionalProperties" in schema:
        return short | {"additionalProperties": _short(schema["additionalProperties"], place)}
    if schema.get("type") == "string":
        return short | _limit(_MOST_TEXT.get(place.rpartition(".")[2]))
    if schema.get("type") in ("integer", "number"):
        least = schema.get("minimum", -(2**53))
        return short | ({"minimum": least} if least else {})
    return short


def _picked(schema: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: schema[name] for name in names if name in schema}


def _limit(most: int | None) -> dict[str, Any]:
    return {} if most is None else {"most": most}


if __name__ == "__main__":
    for path, text in files().items():
        write(path, text)
