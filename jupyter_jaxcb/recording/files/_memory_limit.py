"""How much memory a JSON text takes when it is read, told before it is parsed."""

from __future__ import annotations

from collections.abc import Iterable

# Bytes that each of these stands for, with the fact that is made of it: a list; a dict of few keys;
# a key more; half of a text; a place in a list, and a number.
_TAKES = {b"[": 120, b"{": 256, b":": 72, b'"': 40, b",": 54}
MOST = 130  # that one byte may stand for


def parsed_bytes(pieces: Iterable[bytes]) -> int:
    """At most what reading the JSON takes, the text itself and the recording included.

    Args:
        pieces: of the text, wherever it is cut.
    """
    size, needed, wide, escaped = 0, 0, False, False
    for piece in pieces:
        size += len(piece)
        needed += sum(piece.count(sign) * takes for sign, takes in _TAKES.items())
        wide = wide or not piece.isascii()
        escaped = escaped or b"\\" in piece
    # The bytes, the text of them, and the texts in it. One wide character makes a whole text wide.
    return needed + size * (9 if wide else 6 if escaped else 3)
