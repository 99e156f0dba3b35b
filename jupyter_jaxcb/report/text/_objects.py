"""Summarize how host objects were used."""

from __future__ import annotations

from ...recording import ObjectUse, Recording
from ..summary import counted
from ._words import byte_words, time_words

_IN_VAIN = 10  # so often computed, and found never: its limits are too low, or its arguments differ


def by_host_object(recording: Recording) -> list[str]:
    """Return a line for each host object that was used."""
    return [_words(use) for use in recording.objects]


def _words(use: ObjectUse) -> str:
    words = f"host object {use.name}: "
    if use.computed:
        words += f"computed {counted(use.computed, 'time')} in {time_words(use.computed_ns)}, "
    words += f"found {counted(use.found, 'time')}"
    if use.found:
        words += f" (saved {time_words(use.saved_ns)})"
    words += f"; hashing took {time_words(use.hashed_ns)}; {byte_words(use.nbytes)} are kept"
    if use.removed:
        words += f"; {use.removed:,} removed by a limit"
    return words + _advice(use)


def _advice(use: ObjectUse) -> str:
    if use.found or use.computed < _IN_VAIN:
        return ""
    if use.removed:
        return "; no object was kept long enough to be found: raise max_bytes or max_objects"
    return "; no object was found again: its arguments differ in each call"
