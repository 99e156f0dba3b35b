"""The capabilities that change what summaries count and say, one row each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...recording import LoweredSite, NoteKind, Recording, Site
from . import _mask, _queue

_Words = Callable[[Site, Sequence[LoweredSite]], Mapping[NoteKind, str]]


class _Capability(NamedTuple):
    notes: Callable[[Recording, Sequence[int]], list[str]]  # on the entries with these numbers
    not_made: Callable[[Recording], Counter[int]]  # by entry: reached calls that it left out
    ends_runs: Callable[[LoweredSite], bool] = lambda _: True  # does its failed call end a run?
    words: _Words = lambda *_: {}  # of a site, in place of those in `NOTES`


CAPABILITIES = (
    _Capability(_queue.notes, _queue.not_made, _queue.ends_runs),
    _Capability(_mask.notes, _mask.not_made, words=_mask.words),
)


def reached_but_not_made(recording: Recording) -> Counter[int]:
    """Count, by index into `Recording.lowered`, the calls that programs reached but left out."""
    return sum((one.not_made(recording) for one in CAPABILITIES), Counter())


def ends_runs(fact: LoweredSite) -> bool:
    """Return whether a failed call of this site ends the run of its program."""
    return all(one.ends_runs(fact) for one in CAPABILITIES)
