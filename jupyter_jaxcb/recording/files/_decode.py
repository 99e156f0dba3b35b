"""Check what is read from a file: every value, and the memory that it takes."""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import reprlib
import types
import typing
from collections.abc import Iterable, Sequence
from typing import Any

from .._facts import Site
from .._vmap import VmapMethod, method_named

_PLAIN = (int, str, bool)
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60
_NAMED = 8  # values of an enumeration that a message lists
_BITS = 63  # of an integer, without its sign
# Sums and differences of numbers in these limits have 63 bits, too: 2**60 ns are 36 years.
LEAST_NS, MOST_NS = -(1 << 60), 1 << 62  # of a time on a clock
_MOST_SUM = 1 << 60  # of all other numbers
_TIMES = ("start_ns", "end_ns", "offset_ns")
_MOST_ELEMENTS = 1 << 200  # of an array or a batch, so that a report can write the number


class RecordingFileError(ValueError):
    """A file or text cannot be read as a recording; the message says why.

    >>> import jupyter_jaxcb as jaxcb
    >>> try:
    ...     jaxcb.Recording.from_json("no recording")
    ... except jaxcb.RecordingFileError as error:
    ...     print("not read")
    not read
    """


def damaged(place: str, wanted: str, value: Any) -> RecordingFileError:
    """Return the error for `value` at `place`, where `wanted` is expected."""
    found = _SHORT.repr(value)  # shortened: it may be as large as the file
    short = found if len(found) <= 60 else f"{found[:57]}..."
    return RecordingFileError(
        f"cannot read this recording: {place} is {short}, expected {wanted}. The file is damaged "
        "or was not written by jupyter_jaxcb."
    )


def environment(data: Any) -> dict[str, str]:
    """Return the environment of a recording if `data` is one, else raise."""
    if not isinstance(data, dict) or not all(isinstance(word, str) for word in data.values()):
        raise damaged("environment", "an object of strings", data)
    return data


class Decoder:
    """Builds facts from parsed JSON.

    Args:
        sites: the sites that facts refer to by index.
        names_methods: whether the file has only the names of vmap methods.
    """

    def __init__(self, sites: Sequence[Site] = (), names_methods: bool = False) -> None:
        self._sites = sites
        self._names_methods = names_methods
        self._sum = 0

    def of(self, hint: Any, data: Any, place: str) -> Any:
        """Decode `data` as the type `hint`: int, str, bool, tuple, enum, or a class of facts.

        Raises:
            RecordingFileError: `data` has another type; the message names `place`.
        """
        if hint in _PLAIN:
            if type(data) is not hint or (isinstance(data, int) and data.bit_length() > _BITS):
                raise damaged(place, _words(hint), data)
            return data
        if hint is Site:
            return self.one_of(self._sites, data, place)
        if hint is VmapMethod and self._names_methods:
            return method_named(self.of(str, data, place))
        if isinstance(hint, types.UnionType):
            (inner,) = (one for one in typing.get_args(hint) if one is not type(None))
            return None if data is None else self.of(inner, data, place)
        if typing.get_origin(hint) is tuple:
            inner = typing.get_args(hint)[0]
            return tuple(self.of(inner, one, place) for one in self.list(data, place))
        if issubclass(hint, enum.Enum):
            values = [one.value for one in hint]
            if data not in values:
                more = ["…"] * (len(values) > _NAMED)
                raise damaged(place, f"one of {', '.join([*values[:_NAMED], *more])}", data)
            return hint(data)
        return self.record(hint, data, place)

    def record(self, kind: Any, data: Any, place: str) -> Any:
        """Decode a dataclass from a dict or a named tuple from a list, filling in defaults."""
        hints, needed = _fields(kind)
        if dataclasses.is_dataclass(kind):
            if not isinstance(data, dict):
                raise damaged(place, "an object", data)
            given = data
        else:
            if not isinstance(data, list) or len(data) > len(hints):
                raise damaged(place, f"a list of {len(hints)}", data)
            given = dict(zip(hints, data, strict=False))
        for name in given:
            if name not in hints:
                raise damaged(place, f"one of {', '.join(hints)}", name)
        for name in needed:
            if name not in given:
                raise damaged(place, f"something with {name}", data)
        made = {name: self.of(hints[name], one, f"{place}.{name}") for name, one in given.items()}
        for name, one in made.items():
            self._check(one, name, f"{place}.{name}")
        make: Any = kind
        return make(**made)

    def _check(self, value: Any, name: str, place: str) -> None:
        """Raise if a number is beyond what reports can add and write."""
        if name in _TIMES:
            if not LEAST_NS <= value <= MOST_NS:
                raise damaged(place, f"a time from {LEAST_NS} to {MOST_NS} ns", value)
        elif isinstance(value, int):
            self._sum += abs(value)
            if self._sum >= _MOST_SUM:
                raise damaged(place, f"numbers of which the sum is below {_MOST_SUM}", value)
        elif name == "shape":
            check_elements(value, place)
        elif name == "levels":
            check_elements([level.size for level in value], place)

    @staticmethod
    def list(data: Any, place: str) -> list[Any]:
        """Return `data` if it is a list, else raise."""
        if not isinstance(data, list):
            raise damaged(place, "a list", data)
        return data

    @staticmethod
    def one_of(things: Sequence[Any], number: Any, place: str) -> Any:
        """Return the element of `things` with this index."""
        if type(number) is not int or not 0 <= number < len(things):
            raise damaged(place, f"a number below {len(things)}", number)
        return things[number]


def check_elements(sizes: Sequence[int], place: str) -> None:
    """Raise if these are no sizes of axes, or their product is a number of hundreds of digits."""
    if min(sizes, default=0) < 0 or math.prod(max(size, 1) for size in sizes) > _MOST_ELEMENTS:
        raise damaged(place, "sizes of axes", sizes)


def _words(hint: Any) -> str:
    return {int: "a 64-bit integer", str: "a string", bool: "true or false"}[hint]


@functools.cache
def _fields(kind: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the fields of a class of facts with their types, and those without a default."""
    hints = typing.get_type_hints(kind)
    if dataclasses.is_dataclass(kind):
        fields = dataclasses.fields(kind)
        needed = [field.name for field in fields if field.default is dataclasses.MISSING]
        return {field.name: hints[field.name] for field in fields}, needed
    defaults = kind._field_defaults
    return {name: hints[name] for name in kind._fields}, [
        name for name in kind._fields if name not in defaults
    ]


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
