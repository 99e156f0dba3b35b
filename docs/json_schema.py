"""Generate the JSON Schema of a recording from its classes of facts."""

from __future__ import annotations

import dataclasses
import enum
import json
import types
import typing
from collections.abc import Collection
from pathlib import Path
from typing import Any

from from_code import fields, meanings, reached, write

from jupyter_jaxcb.recording import SCHEMA, Recording
from jupyter_jaxcb.recording._facts import ROW

_TYPES = {int: "integer", str: "string", bool: "boolean"}
_NUMBER = {"type": "integer", "minimum": 0}


def write_schema(folder: Path) -> None:
    """Write ``recording.schema.json`` to `folder`."""
    write(folder / "recording.schema.json", json.dumps(json_schema(), indent=1) + "\n")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a recording."""
    hints = typing.get_type_hints(Recording)
    columns = ROW.names or ()
    special: dict[str, Any] = {
        "schema": {"const": SCHEMA},
        "environment": {"type": "object", "additionalProperties": {"type": "string"}},
        "numbers": {"type": "object", "additionalProperties": {"type": "integer"}},
        "bound": _pairs({"$ref": "#/$defs/Site"}),
        "runs": _pairs({"$ref": "#/$defs/Program"}),
        "stale": {"type": "array", "items": _NUMBER},
        "calls": _object({name: _list({"type": "integer"}) for name in columns}, columns),
    }
    keys = ("schema", *fields(Recording))
    whole = _object({name: special.get(name) or _schema(hints[name]) for name in keys}, {"schema"})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Recording",
        **whole,
        "$defs": {kind.__name__: _definition(kind) for kind in reached()},
    }


def _definition(kind: Any) -> dict[str, Any]:
    if issubclass(kind, enum.Enum):
        return {"enum": [member.value for member in kind]}
    hints = typing.get_type_hints(kind)
    meaning = meanings(kind)
    parts = {n: {**_schema(hints[n]), "description": meaning[n]} for n in fields(kind)}
    if dataclasses.is_dataclass(kind):
        needed = {f.name for f in dataclasses.fields(kind) if f.default is dataclasses.MISSING}
        return _object(parts, needed)
    return {
        "type": "array",
        "prefixItems": list(parts.values()),
        "items": False,
        "minItems": len(parts),
    }


def _schema(hint: Any) -> dict[str, Any]:
    if hint in _TYPES:
        return {"type": _TYPES[hint]}
    if isinstance(hint, types.UnionType):
        inner = next(one for one in typing.get_args(hint) if one is not type(None))
        return {"anyOf": [_schema(inner), {"type": "null"}]}
    if typing.get_origin(hint) is tuple:
        return _list(_schema(typing.get_args(hint)[0]))
    return {"$ref": f"#/$defs/{hint.__name__}"}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _object(parts: dict[str, Any], needed: Collection[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": parts,
        "required": [name for name in parts if name in needed],
        "additionalProperties": False,
    }


def _pairs(first: dict[str, Any]) -> dict[str, Any]:
    pair = {
        "type": "array",
        "prefixItems": [first, {"type": "integer"}],
        "items": False,
        "minItems": 2,
    }
    return _list(pair)
