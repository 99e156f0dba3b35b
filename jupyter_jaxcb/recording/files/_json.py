"""Write and read recordings as JSON.

The schema number changes whenever keys or their meaning change.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .._columns import ROW
from .._facts import Compilation, LoweredSite, Outcome, Program, Site
from .._profile import Profile
from .._recorded_facts import RecordedFacts
from ._decode import LEAST_NS, MOST_NS, Decoder, RecordingFileError, damaged, environment
from ._view_json import fields_of_view, is_of_view

SCHEMA = 9  # of files; the data saved in notebooks has a schema number of its own
_OLDEST = 5  # that can be read: its compilations end at `end_ns`
_METHODS = 7  # the first whose vmap levels have more of a method than its name
_OF_VIEW = (
    "cannot load the JSON that a view saved: it has the host calls, but not the compiled programs. "
    "`python -m jupyter_jaxcb export FILE.json OUT.csv` makes a table or a timeline of it."
)
_OBJECTS = 8  # the first with `objects` and `wall_ns`
_NOT_FINITE_CALLS = 9  # the first with `not_finite_calls`
_CHUNK = 100_000  # rows formatted at a time
_MOST_SUM = 7 << 60  # of the durations of host calls, in ns; other facts have less than 1 << 60
_OTHERS = ("bound", "runs", "stale", "environment")  # fields that are not read by their type alone
_PLAIN = {
    name: hint
    for name, hint in typing.get_type_hints(RecordedFacts).items()
    if name not in (*_OTHERS, "calls")
}
_OF_SITES = ("lowered", "outcomes")  # fields whose facts refer to sites by index


def to_json(recording: RecordedFacts) -> str:
    """See `Recording.to_json`."""
    return "".join(chunks(recording))


def chunks(recording: RecordedFacts) -> Iterator[str]:
    """Yield the JSON in pieces, because that of many calls is large."""
    yield facts_to_json(recording)[:-1]
    opening = ', "calls": {'
    for name in ROW.names or ():
        yield f'{opening}"{name}": ['
        column = recording.calls[name]
        for start in range(0, len(column), _CHUNK):
            yield ", " * (start > 0) + str(column[start : start + _CHUNK].tolist())[1:-1]
        yield "]"
        opening = ", "
    yield "}}"


def facts_to_json(recording: RecordedFacts) -> str:
    """Return the JSON of everything except the host calls."""
    sites = {
        _whole(site): site
        for site in (
            *recording.bound,
            *(fact.site for fact in recording.lowered),
            *(outcome.site for outcome in recording.outcomes),
        )
    }
    place = {key: number for number, key in enumerate(sites)}
    return json.dumps(
        {
            "schema": SCHEMA,
            "environment": dict(recording.environment),
            "sites": [_named(site) for site in sites.values()],
            "bound": [[place[_whole(s)], count] for s, count in recording.bound.items()],
            **{
                name: [_with_site(fact, place) for fact in getattr(recording, name)]
                for name in _OF_SITES
            },
            "runs": [[program, count] for program, count in recording.runs.items()],
            "stale": sorted(recording.stale),
            **{name: getattr(recording, name) for name in _PLAIN if name not in _OF_SITES},
        }
    )


def fields(text: str | bytes, *, views: bool = False) -> dict[str, Any]:
    """Read the fields of a recording that `to_json` wrote; with `views`, or that a view saved."""
    data = _parsed(text)
    if is_of_view(data):
        if views:
            found = fields_of_view(data)
            return with_calls(found, found.pop("calls"))
        raise RecordingFileError(_OF_VIEW)
    check_schema(data.get("schema"))
    columns = data.pop("calls", None)
    if not isinstance(columns, dict) or set(columns) != set(ROW.names or ()):
        raise damaged("calls", f"an object of {', '.join(ROW.names or ())}", columns)
    rows = len(Decoder.list(columns["element"], "calls.element"))
    for name, column in columns.items():
        if len(Decoder.list(column, f"calls.{name}")) != rows:
            raise damaged(f"calls.{name}", f"a list of {rows}", f"a list of {len(column)}")
    calls = np.empty(rows, ROW)
    for name, column in columns.items():
        calls[name] = _column(name, column)
    return with_calls(_facts(data), calls)


def facts(text: bytes) -> dict[str, Any]:
    """Read the fields that `facts_to_json` wrote."""
    data = _parsed(text)
    check_schema(data.get("schema"))
    return _facts(data)


def with_calls(facts: dict[str, Any], calls: np.ndarray) -> dict[str, Any]:
    """Add the host calls to `facts`, after checking the indices in them.

    Raises:
        RecordingFileError: an index or a time is out of range.
    """
    for name, count in (
        ("lowered", len(facts["lowered"])),
        ("thread", len(facts["threads"])),
        ("error", len(facts["errors"]) + 1),
    ):
        largest = int(calls[name].max(initial=0))
        if len(calls) and largest >= count:
            raise damaged(f"calls.{name}", f"numbers below {count}", largest)
    for name in ("start_ns", "end_ns", "queued_ns"):
        for time in (int(calls[name].min(initial=0)), int(calls[name].max(initial=0))):
            if not LEAST_NS <= time <= MOST_NS:
                raise damaged(f"calls.{name}", f"times from {LEAST_NS} to {MOST_NS} ns", time)
    for name, times in (
        ("end_ns", calls["end_ns"] - calls["start_ns"]),
        ("queued_ns", calls["queued_ns"]),
    ):
        if (total := float(np.abs(times.astype(float)).sum())) > _MOST_SUM:
            raise damaged(f"calls.{name}", f"durations of at most {_MOST_SUM} ns in all", total)
    calls.flags.writeable = False
    return {**facts, "calls": calls}


def check_schema(schema: Any) -> None:
    """Raise `RecordingFileError` if this version cannot read `schema`."""
    if type(schema) is not int:
        raise RecordingFileError(
            "cannot read this file: it is not a recording. Pass a .jaxcb or .json file that "
            "recording.save wrote; timelines (.perfetto.json, .trace.json) cannot be read."
        )
    if not _OLDEST <= schema <= SCHEMA:
        raise RecordingFileError(
            f"cannot read a recording of schema {schema!r}: this version of "
            f"jupyter_jaxcb reads schema {_OLDEST} to {SCHEMA}. "
            + ("Update jupyter_jaxcb." if schema > SCHEMA else "Install the version that wrote it.")
        )


def _parsed(text: str | bytes) -> dict[str, Any]:
    try:
        data = json.loads(text)
    except RecursionError:
        why = "it is nested too deeply"
    except ValueError as error:  # invalid JSON or UTF-8, or an integer with too many digits
        why = str(error)
    else:
        if isinstance(data, dict):
            return data
        why = "it is not a JSON object"
    raise RecordingFileError(
        f"cannot read this recording: {why}. The file is truncated or damaged, or was not written "
        "by jupyter_jaxcb."
    )


def _facts(data: dict[str, Any]) -> dict[str, Any]:
    if data["schema"] < _OBJECTS:
        data.setdefault("objects", [])
        data.setdefault("wall_ns", 0)
    data.setdefault("late_ns", 0)
    if data["schema"] < _NOT_FINITE_CALLS:
        data.setdefault("not_finite_calls", [])
    wanted = {*_PLAIN, *_OTHERS, "schema", "sites"}
    if set(data) != wanted:
        odd = sorted(set(data) ^ wanted)
        raise damaged("the recording", f"an object of {', '.join(sorted(wanted))}", odd)
    decoder = Decoder()
    listed = decoder.list(data["sites"], "sites")
    sites = [decoder.record(Site, one, f"sites[{n}]") for n, one in enumerate(listed)]
    decoder = Decoder(sites, names_methods=data["schema"] < _METHODS)
    found = {name: decoder.of(hint, data[name], name) for name, hint in _PLAIN.items()}
    found["bound"] = dict(_pairs(decoder, Site, data["bound"], "bound"))
    found["runs"] = dict(_pairs(decoder, Program, data["runs"], "runs"))
    _check_numbers(found)
    return {
        **found,
        "stale": frozenset(
            decoder.one_of(range(len(found["lowered"])), number, "stale")
            for number in decoder.list(data["stale"], "stale")
        ),
        "environment": environment(data["environment"]),
    }


def _check_numbers(found: Mapping[str, Any]) -> None:
    """Raise if a fact has an index that is out of range."""
    for fact in found["lowered"]:
        for level in fact.levels:
            if len(level.batched) != len(fact.operands):
                raise damaged("lowered.levels", f"{len(fact.operands)} operands", level.batched)
        for kind, avals in zip(("operand", "result"), fact.host_avals(), strict=True):
            names = getattr(fact, f"{kind}_names")
            if names and len(names) != len(avals):
                raise damaged(f"lowered.{kind}_names", f"{len(avals)} names or none", names)
    _check_compilations(found["compilations"])
    for worker in found["workers"]:
        Decoder.one_of(found["threads"], worker.thread, "workers.thread")
    for one in found["not_kept"]:
        Decoder.one_of(range(len(found["errors"]) + 1), one.error, "not_kept.error")
    for name in (
        "sample_values", "not_finite", "not_finite_calls", "running", "not_kept", "queue", "masks",
    ):  # fmt: skip
        for fact in found[name]:
            Decoder.one_of(found["lowered"], fact.lowered, f"{name}.lowered")
    if found["profile"] is not None:
        _check_profile(found["profile"], len(found["lowered"]))
    _check_processes(found)


def _check_processes(found: Mapping[str, Any]) -> None:
    known = [one.number for one in found["processes"]] or [0]
    if len({*known}) < len(known):
        raise damaged("processes.number", "each number once", known)
    compiled = [
        *found["compilations"],
        *(found["profile"].compilations if found["profile"] else ()),
    ]
    programs = [one.program for one in (*found["lowered"], *found["outcomes"], *compiled)]
    for one in (*filter(None, programs), *found["runs"], *found["lowered"]):
        if one.process not in known:
            raise damaged("process", f"one of the processes {known}", one.process)


def _check_compilations(compilations: Sequence[Compilation]) -> None:
    for one in compilations:
        for name, of_each in (("weak", one.weak), ("names", one.names)):
            if of_each and len(of_each) != len(one.arguments):
                wanted = f"{len(one.arguments)} or none"
                raise damaged(f"compilations.{name}", wanted, of_each)


def _check_profile(profile: Profile, lowered: int) -> None:
    _check_compilations(profile.compilations)
    for part in profile.parts:
        if not -1 <= part.lowered < lowered:
            raise damaged("profile.parts.lowered", f"a number below {lowered}", part.lowered)
    for lane in profile.lanes:
        if len(lane.spans) % 3 or min(lane.spans, default=0) < 0:
            raise damaged("profile.lanes.spans", "triples of numbers from 0", lane.spans)
        for part in lane.spans[2::3]:
            Decoder.one_of(profile.parts, part, "profile.lanes.spans")


def _pairs(decoder: Decoder, kind: Any, data: Any, place: str) -> Iterator[tuple[Any, int]]:
    for pair in decoder.list(data, place):
        if not isinstance(pair, list) or len(pair) != 2:
            raise damaged(place, "a pair", pair)
        yield decoder.of(kind, pair[0], place), decoder.of(int, pair[1], place)


def _column(name: str, data: list[Any]) -> np.ndarray:
    dtype = ROW[name]
    limits = np.iinfo(dtype)
    # Checked before numpy sees it: one long string in the list would make every item as long.
    whole = set(map(type, data)) <= {int}
    column = np.asarray(data if whole and data else np.empty(0, np.int64))
    fits = whole and column.dtype.kind in "iu"
    if not fits or column.min(initial=0) < limits.min or column.max(initial=0) > limits.max:
        raise damaged(f"calls.{name}", f"a list of {ROW[name].name}", data)
    return column


def _whole(site: Site) -> tuple[Any, ...]:
    """Return a key of a site that includes its source, which equality ignores."""
    return site, site.source


def _named(fact: Any) -> dict[str, Any]:
    return {field.name: getattr(fact, field.name) for field in dataclasses.fields(fact)}


def _with_site(fact: LoweredSite | Outcome, place: Mapping[tuple[Any, ...], int]) -> dict[str, Any]:
    return {**_named(fact), "site": place[_whole(fact.site)]}
