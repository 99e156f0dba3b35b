"""Documents are of the schema by which the front end reads them, whatever was recorded.

`tests/conftest.py` checks every recording that a test makes: JupyterLab says that a document is
damaged if it is not of the schema.
"""

import dataclasses

import numpy as np

from tests._site_schema import check_beside
from tests.interface import Recording, to_mimebundle

CALLS = 100  # of one recording that are encoded

_checked: set = set()  # kinds of recordings, see `_kind`


def check(recording: Recording) -> None:
    """Raise AssertionError if the front end cannot show `recording`.

    Recordings of one kind are checked once, because tests make thousands of them.
    """
    kind = _kind(recording)
    made_up = (recording.calls["end_ns"] < recording.calls["start_ns"]).any()  # no clock does that
    if made_up or kind in _checked:
        return
    _checked.add(kind)
    short = dataclasses.replace(recording, calls=recording.calls[:CALLS])
    data, metadata = to_mimebundle(short, values=True)
    (mime_type,) = metadata
    facts, measured = data[mime_type], metadata[mime_type]
    both = zip(facts["sites"], measured["sites"], strict=True)
    check_beside("FactsView", facts | {"sites": [known | timed for known, timed in both]})
    check_beside("MeasuredView", measured)


def _kind(recording):
    """Return what decides which fields a document has, and which values are special in it."""
    where = {(s.flavor, s.line > 0, s.cell, len(s.callers)) for s in recording.bound}
    lowered = {
        (f.site.flavor, f.site.line > 0, f.program is None, f.levels, f.queued, f.masked)
        for f in recording.lowered
    }
    outcomes = {
        (o.site.flavor, o.site.line > 0, o.status, o.reason, o.around, o.written is None, o.notes)
        for o in recording.outcomes
    }
    filled = (
        bool(len(value))
        for value in vars(recording).values()
        if isinstance(value, tuple | dict | frozenset | np.ndarray)
    )
    profile = recording.profile and object()
    return frozenset(where), frozenset(lowered), frozenset(outcomes), (*filled,), profile
