"""Read the fields of a serialized protocol buffer, without its schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # wire types
_SIZES = {_FIXED64: 8, _FIXED32: 4}


class Span(NamedTuple):
    """The position of a message, or of another long value of a field: text or packed numbers."""

    start: int
    end: int


class Message:
    """The fields of a message, by number. A missing text or number is empty or 0."""

    def __init__(self, data: bytes, span: Span) -> None:
        """Read the message at `span` in the serialized bytes.

        Raises:
            ValueError: if this is not a valid protocol buffer.
        """
        self._data = data
        self._fields = list(_fields(data, span))
        self._last = dict(self._fields)

    def spans(self, field: int) -> list[Span]:
        """Return the positions of the values of a repeated field."""
        return [one for key, one in self._fields if key == field and isinstance(one, Span)]

    def texts(self, field: int) -> list[str]:
        """Return the texts of a repeated field."""
        return [self._data[slice(*one)].decode(errors="replace") for one in self.spans(field)]

    def messages(self, field: int) -> list[Message]:
        """Return the messages of a repeated field."""
        return [Message(self._data, one) for one in self.spans(field)]

    def numbers(self, field: int) -> list[int]:
        """Return the numbers of a repeated field, which are packed into one value."""
        found, (position, end) = [], self._span(field)
        while position < end:
            number, position = _varint(self._data, position)
            found.append(number)
        return found

    def number(self, field: int) -> int | None:
        """Return the number of a field; None if it is missing."""
        value = self._last.get(field)
        return value if isinstance(value, int) else None

    def text(self, field: int) -> str:
        """Return the text of a field."""
        return self._data[slice(*self._span(field))].decode(errors="replace")

    def message(self, field: int) -> Message:
        """Return the message of a field."""
        return Message(self._data, self._span(field))

    def _span(self, field: int) -> Span:
        value = self._last.get(field)
        return value if isinstance(value, Span) else Span(0, 0)


def first_text(data: bytes, span: Span) -> str:
    """Return the text of the first field of a message."""
    _, value = next(_fields(data, span), (0, 0))
    return data[slice(*value)].decode(errors="replace") if isinstance(value, Span) else ""


def _fields(data: bytes, span: Span) -> Iterator[tuple[int, int | Span]]:
    """Yield the number and the value of each field in a message; long values as a `Span`."""
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
