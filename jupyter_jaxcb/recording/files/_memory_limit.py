"""Estimate the memory that reading a JSON text takes, before parsing it."""

from __future__ import annotations

from collections.abc import Iterable

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
