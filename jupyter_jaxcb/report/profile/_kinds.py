"""How reports name, draw and count each kind of part: one row a kind."""

from __future__ import annotations

from typing import NamedTuple

from ...recording import Part, PartKind


class Kind(NamedTuple):
    """One row of `KINDS`."""

    words: str
    fill: str  # a character of the bar in text, which the rows below it repeat
    color: str  # of the bar in HTML; distinct with any color vision, on light and on dark
    counted: str = ""  # what the count of a part counts; empty: it is not shown


KINDS = {  # in the order of the bar
    PartKind.HOST: Kind("host functions", "█", "#4477aa", "call"),
    PartKind.CROSSING: Kind("crossings", "▓", "#66ccee", "crossing"),
    PartKind.WAITING: Kind("full queues", "w", "#882255"),
    PartKind.COPY: Kind("copies", "▚", "#aa3377", "copy"),
    PartKind.XLA: Kind("XLA", "▒", "#ccbb44", "run"),
    PartKind.COMPILATION: Kind("compilation", "c", "#228833", "time"),
    PartKind.DISPATCH: Kind("dispatch", "d", "#44aa99", "run"),
    PartKind.PYTHON: Kind("Python outside of JAX", "░", "#ee6677"),
    PartKind.QUEUED: Kind("queued host functions", "q", "#6699cc", "call"),
    PartKind.IDLE: Kind("idle", "·", "#bbbbbb"),
    PartKind.UNKNOWN: Kind("not profiled", "?", "#777777"),
}
_PLURALS = {"copy": "copies"}


def count_words_of(part: Part) -> str:
    """Return ``900 calls``; empty if the part is not counted."""
    noun = KINDS[part.kind].counted
    if not noun or not part.times:
        return ""
    return f"{part.times:,} {noun if part.times == 1 else _PLURALS.get(noun, f'{noun}s')}"
