"""Recordings of schema 2, which no release writes any more, as ones of schema 3.

Their frames say less, of calls without rows there is the sum, and what became of a call is said in
sentences. These are kept as they are: no text is taken apart for what it means.
"""

from __future__ import annotations

from typing import Any

from .._facts import NoteKind, Reason
from ._decode import Decoder, damaged


def of_schema_2(data: dict[str, Any]) -> dict[str, Any]:
    """The object of a file of schema 2 as one of schema 3.

    Raises:
        RecordingFileError: its outcomes are not as schema 2 has them.
    """
    if "outcomes" not in data:  # which is told with whatever else is missing
        return data
    listed = Decoder.list(data["outcomes"], "outcomes")
    return {"not_kept": [], **data, "outcomes": [_outcome(one) for one in listed]}


def _outcome(data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise damaged("outcomes", "an object", data)
    text = {name: _text(data, name) for name in ("reason", "remedy")}
    rest = {name: one for name, one in data.items() if name not in (*text, "notes")}
    if text["reason"]:
        rest |= {"reason": Reason.AS_WRITTEN, "as_written": list(text.values())}
    notes = Decoder().of(tuple[str, ...], data.get("notes", []), "outcomes.notes")
    return {**rest, "notes": [[NoteKind.AS_WRITTEN, [], None, note] for note in notes]}


def _text(data: dict[str, Any], name: str) -> str:
    return Decoder().of(str, data.get(name, ""), f"outcomes.{name}")
