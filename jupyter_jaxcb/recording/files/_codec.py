"""Turn a recording into JSON and back, by the annotations of its classes.

A dataclass becomes an object without the fields that have their default, a named tuple a list, and
the host calls an object of columns. Everything read is checked: types, indices, and the sizes of
numbers, so that reports can add and write them.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import reprlib
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._facts import ROW

SCHEMA = 12  # changes whenever keys or their meaning change; saved notebooks have another one
COLUMNS = ROW.names or ()
_CHUNK = 100_000  # rows formatted at a time
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_WORDS = {int: "a 64-bit integer", str: "a string", bool: "true or false"}
# Sums and differences of numbers in these limits have 63 bits, too: 2**60 ns are 36 years.
_LEAST_NS, _MOST_NS = -(1 << 60), 1 << 62  # of a time on a clock
_MOST_HOST_NS = 7 << 60  # of the durations of all host calls
_MOST_SUM = 1 << 60  # of all other numbers
_MOST_ELEMENTS = 1 << 200  # of an array or a batch, so that a report can write the number
_TIMES = ("start_ns", "end_ns", "spans")
# Fields that are indices, by the list that they refer to; that of an error is counted from 1.
_INDICES = {"lowered": "lowered", "stale": "lowered", "thread": "threads", "error": "errors"}


class RecordingFileError(ValueError):
    """A file or text cannot be read as a recording; the message says why.

    >>> import jupyter_jaxcb as jaxcb
    >>> try:
    ...     jaxcb.Recording.from_json("no recording")
    ... except jaxcb.RecordingFileError as error:
    ...     print("not read")
    not read
    """


@functools.cache
def _fields(kind: Any) -> dict[str, tuple[Any, Any]]:
    """Return type and default of each field of a class; a field without one has MISSING."""
    hints = typing.get_type_hints(kind)
    if not dataclasses.is_dataclass(kind):
        defaults = kind._field_defaults
        return {n: (hints[n], defaults.get(n, dataclasses.MISSING)) for n in kind._fields}
    return {
        field.name: (
            hints[field.name],
            field.default
            if field.default_factory is dataclasses.MISSING
            else field.default_factory(),
        )
        for field in dataclasses.fields(kind)
    }


# Write


def chunks(recording: Any) -> Iterator[str]:
    """Yield the JSON of a recording in pieces, because that of many calls is large."""
    yield facts_to_json(recording)[:-1]
    opening = ', "calls": {'
    for name in COLUMNS:
        yield f'{opening}"{name}": ['
        column = recording.calls[name]
        for start in range(0, len(column), _CHUNK):
            yield ", " * (start > 0) + str(column[start : start + _CHUNK].tolist())[1:-1]
        yield "]"
        opening = ", "
    yield "}}"


def facts_to_json(recording: Any) -> str:
    """Return the JSON of everything except the host calls."""
    return json.dumps({"schema": SCHEMA, **_plain(recording)}, default=_plain)


def _plain(value: Any) -> Any:
    """Return a set as a list, and a dataclass as an object without its defaults."""
    if isinstance(value, frozenset):
        return sorted(value)
    fields = {
        name: getattr(value, name)
        for name, (hint, default) in _fields(type(value)).items()
        if hint is not np.ndarray and getattr(value, name) != default
    }
    for name, field in fields.items():
        if isinstance(field, Mapping) and not all(isinstance(key, str) for key in field):
            fields[name] = list(field.items())
    return fields


# Read


def parsed(text: str | bytes) -> dict[str, Any]:
    """Parse the JSON of a recording of this schema.

    Raises:
        RecordingFileError: it is no JSON, no recording, or has another schema.
    """
    try:
        data = json.loads(text)
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError as error:  # invalid JSON or UTF-8, or an integer with too many digits
        why = str(error)
    else:
        if isinstance(data, dict):
            check_schema(data.pop("schema", None))
            return data
        why = "it is not a JSON object"
    raise RecordingFileError(
        f"cannot read this recording: {why}. The file is truncated or damaged, or was not written "
        "by jupyter_jaxcb."
    )


def check_schema(schema: Any) -> None:
    """Raise `RecordingFileError` if this version cannot read `schema`."""
    if type(schema) is not int:
        raise RecordingFileError(
            "cannot read this file: it is not a recording. Pass a .jaxcb or .json file that "
            "recording.save wrote; timelines (.perfetto.json, .trace.json) cannot be read."
        )
    if schema != SCHEMA:
        raise RecordingFileError(
            f"cannot read a recording of schema {_SHORT.repr(schema)}: this version of "
            f"jupyter_jaxcb reads schema {SCHEMA}, so install the version that wrote it."
        )


def decoded(kind: Any, data: dict[str, Any]) -> Any:
    """Return the recording, of class `kind`, with these facts and columns of host calls.

    Raises:
        RecordingFileError: something has another type or is out of range; the message names it.
    """
    recording = _Reader(data).record(kind, data, "")
    for fact in recording.lowered:
        for level in fact.levels:
            _check_length(level.batched, len(fact.operands), "lowered.levels")
        for name, avals in zip(("operand_names", "result_names"), fact.host_avals(), strict=True):
            _check_length(getattr(fact, name), len(avals), f"lowered.{name}", or_none=True)
    profile = recording.profile
    for one in (*recording.compilations, *(profile.compilations if profile else ())):
        for name in ("weak", "names"):
            _check_length(
                getattr(one, name), len(one.arguments), f"compilations.{name}", or_none=True
            )
    for lane in profile.lanes if profile else ():
        parts = lane.spans[2::3]
        if len(lane.spans) % 3 or min(lane.spans, default=0) < 0:
            raise damaged("profile.lanes.spans", "triples of numbers from 0", lane.spans)
        if max(parts, default=-1) >= len(profile.parts):
            raise damaged("profile.lanes.spans", f"parts below {len(profile.parts)}", parts)
    return recording


def damaged(place: str, wanted: str, value: Any) -> RecordingFileError:
    """Return the error for `value` at `place`, where `wanted` is expected."""
    found = _SHORT.repr(value)  # shortened: it may be as large as the file
    short = found if len(found) <= 60 else f"{found[:57]}..."
    return RecordingFileError(
        f"cannot read this recording: {place} is {short}, expected {wanted}. The file is damaged "
        "or was not written by jupyter_jaxcb."
    )


def _check_length(things: Sequence[Any], count: int, place: str, or_none: bool = False) -> None:
    if len(things) != count and (things or not or_none):
        raise damaged(place, f"{count} items{' or none' * or_none}", things)


class _Reader:
    """Builds facts from parsed JSON.

    Args:
        data: the whole recording, for what indices refer to.
    """

    def __init__(self, data: Mapping[str, Any]) -> None:
        lists = {field: data.get(name) for field, name in _INDICES.items()}
        self._counts = {
            field: (len(listed) if isinstance(listed, list) else 0) + (field == "error")
            for field, listed in lists.items()
        }
        self._sum = 0

    def record(self, kind: Any, data: Any, place: str) -> Any:
        """Decode a dataclass from an object, or a named tuple from a list."""
        fields = _fields(kind)
        if issubclass(kind, tuple):
            if not isinstance(data, list) or len(data) != len(fields):
                raise damaged(place, f"a list of {len(fields)}", data)
            data = dict(zip(fields, data, strict=True))
        if not isinstance(data, dict):
            raise damaged(place, "an object", data)
        needed = {name for name, (_, default) in fields.items() if default is dataclasses.MISSING}
        if odd := (data.keys() - fields.keys()) | (needed - data.keys()):
            wanted = f"an object of {', '.join(fields)}"
            raise damaged(place or "the recording", wanted, sorted(odd))
        made = {
            name: self._value(hint, data[name], f"{place}.{name}".lstrip("."), name)
            for name, (hint, _) in fields.items()
            if name in data
        }
        return kind(**made)

    def _value(self, hint: Any, data: Any, place: str, name: str) -> Any:
        """Decode `data`, in the field `name`, as the type `hint`."""
        origin, inner = typing.get_origin(hint), typing.get_args(hint)
        if hint in _WORDS:
            if type(data) is not hint:
                raise damaged(place, _WORDS[hint], data)
            if hint is int:
                self._check_number(data, place, name)
            return data
        if hint is np.ndarray:
            return self._rows(data)
        if origin is types.UnionType:
            return None if data is None else self._value(inner[0], data, place, name)
        if origin in (tuple, frozenset):
            if not isinstance(data, list):
                raise damaged(place, "a list", data)
            items = [self._value(inner[0], item, place, name) for item in data]
            if name == "shape":
                _check_elements(items, place)
            elif name == "levels":
                _check_elements([level.size for level in items], place)
            return origin(items)
        if origin is Mapping:
            if type(data) is not (dict if inner[0] is str else list):
                raise damaged(place, "an object" if inner[0] is str else "a list of pairs", data)
            listed = data.items() if isinstance(data, dict) else data
            try:
                pairs = [(key, item) for key, item in listed]
            except (TypeError, ValueError):
                raise damaged(place, "a list of pairs", data) from None
            return {
                self._value(inner[0], key, place, ""): self._value(inner[1], item, place, "")
                for key, item in pairs
            }
        if issubclass(hint, enum.Enum):
            try:
                return hint(data)
            except ValueError:
                raise damaged(place, f"a value of {hint.__name__}", data) from None
        return self.record(hint, data, place)

    def _check_number(self, value: int, place: str, name: str) -> None:
        """Raise if an index is out of range, or a number beyond what reports can add and write."""
        if name in self._counts:
            least = -1 if place == "profile.parts.lowered" else 0  # -1: no site
            if not least <= value < self._counts[name]:
                raise damaged(place, f"a number below {self._counts[name]}", value)
        elif name in _TIMES:
            if not _LEAST_NS <= value <= _MOST_NS:
                raise damaged(place, f"a time from {_LEAST_NS} to {_MOST_NS} ns", value)
        else:
            self._sum += abs(value)
            if self._sum >= _MOST_SUM:
                raise damaged(place, f"numbers of which the sum is below {_MOST_SUM}", value)

    def _rows(self, columns: Any) -> np.ndarray:
        """Return the host calls; their columns are lists, or arrays of the right types."""
        if not isinstance(columns, dict) or set(columns) != set(COLUMNS):
            raise damaged("calls", f"an object of {', '.join(COLUMNS)}", columns)
        arrays = {name: _column(name, column) for name, column in columns.items()}
        least, most = sorted(map(len, arrays.values()))[:: len(COLUMNS) - 1]
        if least < most:
            raise damaged("calls", "columns of one length", [least, most])
        calls = np.empty(most, ROW)
        for name, array in arrays.items():
            calls[name] = array
            for value in (array.min(), array.max()) if len(array) else ():
                if name in self._counts and value >= self._counts[name]:
                    raise damaged(f"calls.{name}", f"numbers below {self._counts[name]}", value)
                if name.endswith("_ns") and not _LEAST_NS <= value <= _MOST_NS:
                    wanted = f"times from {_LEAST_NS} to {_MOST_NS} ns"
                    raise damaged(f"calls.{name}", wanted, int(value))
        for name, times in (
            ("end_ns", calls["end_ns"] - calls["start_ns"]),
            ("queued_ns", calls["queued_ns"]),
        ):
            if (total := float(np.abs(times.astype(float)).sum())) > _MOST_HOST_NS:
                wanted = f"durations of at most {_MOST_HOST_NS} ns in all"
                raise damaged(f"calls.{name}", wanted, total)
        calls.flags.writeable = False
        return calls


def _column(name: str, column: Any) -> np.ndarray:
    if isinstance(column, np.ndarray):
        return column
    limits = np.iinfo(ROW[name])
    # Checked before numpy sees it: one long string in the list would make every item as long.
    whole = isinstance(column, list) and set(map(type, column)) <= {int}
    if (
        not whole
        or not limits.min <= min(column, default=0) <= max(column, default=0) <= limits.max
    ):
        raise damaged(f"calls.{name}", f"a list of {ROW[name].name}", column)
    return np.array(column, ROW[name])


def _check_elements(sizes: Sequence[int], place: str) -> None:
    """Raise if these are no sizes of axes, or their product is a number of hundreds of digits."""
    if min(sizes, default=0) < 0 or math.prod(max(size, 1) for size in sizes) > _MOST_ELEMENTS:
        raise damaged(place, "sizes of axes", sizes)


# Bytes of memory per character, including the facts built from it: a list; a small dict; a further
# key; half of a string; a list item that is a number.
_TAKES = {b"[": 120, b"{": 256, b":": 72, b'"': 40, b",": 54}
MOST = 130  # bytes of memory that one byte of JSON can take


def parsed_bytes(pieces: Iterable[bytes]) -> int:
    """Return an upper bound, in bytes, of the memory for the text, its JSON and the recording.

    Args:
        pieces: the text, cut anywhere.
    """
    size, needed, wide, escaped = 0, 0, False, False
    for piece in pieces:
        size += len(piece)
        needed += sum(piece.count(sign) * takes for sign, takes in _TAKES.items())
        wide = wide or not piece.isascii()
        escaped = escaped or b"\\" in piece
    # The bytes, the decoded text, and the strings in it. One wide character widens a whole string.
    return needed + size * (9 if wide else 6 if escaped else 3)
