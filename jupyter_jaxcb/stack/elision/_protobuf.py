"""Read the fields of a serialized protocol buffer, without its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_SIZES = {_FIXED64: 8, _FIXED32: 4}


class Span(NamedTuple):
    """The position of the value of a field: text, bytes, packed numbers or a message."""

    start: int
    end: int


def fields(data: bytes, span: Span) -> Iterator[tuple[int, int | Span]]:
    """Yield the number and the value of each field in a message; long values as a `Span`.

    Args:
        data: the serialized bytes.
        span: the position of the message in `data`.

    Raises:
        ValueError: if this is not a valid protocol buffer.
    """
    position, end = span
    while position < end:
        key, position = _varint(data, position)
        kind = key & 7
        if kind == _VARINT:
            value, position = _varint(data, position)
            yield key >> 3, value
            continue
        if kind == _BYTES:
            size, position = _varint(data, position)
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise ValueError(f"a field has the wire type {kind}")
        if position + size > end:
            raise ValueError("a field is longer than its message")
        yield key >> 3, Span(position, position + size)
        position += size


def numbers(data: bytes, value: int | Span) -> list[int]:
    """Return the numbers of a repeated field, packed or single."""
    if isinstance(value, int):
        return [value]
    found, position = [], value.start
    while position < value.end:
        number, position = _varint(data, position)
        found.append(number)
    return found


def _varint(data: bytes, position: int) -> tuple[int, int]:
    """Return the number at `position`, and the position after it."""
    try:
        number = data[position]
        if number < 0x80:
            return number, position + 1
        number, shift = number & 0x7F, 7
        while True:
            position += 1
            byte = data[position]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number, position + 1
            shift += 7
    except IndexError:
        raise ValueError("the message ends in a number") from None
