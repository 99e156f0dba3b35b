"""The rules by which the front end reads a recording, as in `labextension/src/view/data/parse`.

`tests/conftest.py` checks every recording that a test makes: a document that breaks a rule has no
times, no tabs and no timeline in JupyterLab.
"""

import dataclasses

import numpy as np

from tests._site_schema import check_beside, check_site
from tests.interface import Recording, to_mimebundle

CALLS = 100  # of one recording that are encoded
LONGEST_NS = 1e18


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
    follow(facts, FACTS, "facts")
    follow(measured, MEASURED, "measured")
    for known, timed in zip(facts["sites"], measured["sites"], strict=True):
        check_site(known | timed)


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


def follow(value, rule, path):
    """Raise AssertionError if a value breaks its rule: a function, or a list or dict of rules."""
    if isinstance(rule, dict):
        assert isinstance(value, dict), path
        for name, one in rule.items():
            optional = name.endswith("?")
            key = name.removesuffix("?")
            if key in value or not optional:
                follow(value[key], one, f"{path}.{key}")
    elif isinstance(rule, tuple):
        assert len(value) == len(rule), path
        for place, (one, own) in enumerate(zip(value, rule, strict=True)):
            follow(one, own, f"{path}[{place}]")
    elif isinstance(rule, list):
        assert isinstance(value, list | tuple), path
        for place, one in enumerate(value):
            follow(one, rule[0], f"{path}[{place}]")
    else:
        assert rule(value), f"the front end cannot read {path}: {value!r}"


def one_of(*words):
    return lambda value: value in words


def or_null(rule):
    return lambda value: value is None or rule(value)


def whole(value):
    return type(value) is int and 0 <= value < 2**53


def from_minus_one(value):
    return type(value) is int and -1 <= value < 2**53


def amount(value):
    return type(value) in (int, float) and 0 <= value < float("inf")


def time(value):
    return type(value) in (int, float) and abs(value) <= LONGEST_NS


def text(value):
    return type(value) is str


def flag(value):
    return type(value) is bool


FACTS = {
    "schema": one_of(1),
    "headline?": [lambda part: check_beside("Part", part) is None],
    "overflow?": whole,
    "not_kept?": whole,
    "ahead?": flag,
}
MEASURED = {
    **{key: [text] for key in ("out_of_order?", "by_worker?", "threads?", "errors?")},
    "id?": text,
    "compilations?": [
        {"program": text, "lower_ns": amount, "compile_ns": amount, "start_ns": or_null(time)}
    ],
    "calls?": lambda saved: follow(saved, SAVED, "calls") is None,
    "calls_not_saved?": whole,
    "profile?": {
        "wall_ns": amount,
        "start_ns": or_null(time),
        "headline": text,
        "advice": [text],
        "notes": [text],
        "kinds": [{"id": text, "name": text, "wall_ns": amount}],
        "parts": [
            {
                **dict.fromkeys(("kind", "count"), whole),
                **dict.fromkeys(("name", "where"), text),
                **dict.fromkeys(("wall_ns", "busy_ns"), amount),
            }
        ],
        "lanes": [{"name": text, "spans": [amount]}],
    },
}
SAVED = {"rows": whole, "unit_ns": amount, "zlib": text, "crossings?": text}
