"""Recordings survive saving and loading; damaged and hostile files are reported."""

import dataclasses
import gzip
import json
import struct

import numpy as np
import pytest

from jupyter_jaxcb.recording import SCHEMA, Recording
from tests.interface import (
    VMAP_METHODS,
    Aval,
    Compilation,
    Frame,
    Lane,
    LoweredSite,
    NotFinite,
    Outcome,
    Part,
    PartKind,
    Profile,
    Program,
    Reason,
    Recorder,
    RecordingFileError,
    Site,
    Status,
    VmapLevel,
    load,
    record_call,
    record_elements,
)

SITE = Site("pure", "bessel", "<cell>", 4, 11, cell=True, source="return bessel(1, z)")
PROGRAM = Program("jit_f", "cpu", 1)
SUFFIXES = pytest.mark.parametrize("suffix", [".jaxcb", ".json"])
HEADER = struct.Struct("<7sIQQ")


def recorded(times=((5, 9), (2**60, 2**61), (3, 2**62)), elements=4):
    recorder = Recorder(capacity=10**6)
    z = Aval((elements,), "float32")
    single = LoweredSite(SITE, PROGRAM, 0, (z,), (z,))
    looped = LoweredSite(
        SITE, PROGRAM, 1, (z,), (z,), (VmapLevel(elements, VMAP_METHODS["sequential"], (True,)),)
    )
    for fact in (single, looped):
        recorder.bound(SITE)
        recorder.lowered(fact)
    for start, end in times:
        crossing = record_call(recorder, single, 1, start, end, "ValueError: \ud800 no luck")
        recorder.values.take(single, crossing, -1, [np.arange(9.0)], [np.float32(1)])
    record_elements(recorder, looped, 2, np.arange(elements)[::-1], list(range(7, 8 + elements)))
    recorder.values.not_finite(single, 1, 2)
    recorder.values.mark(single, crossing, -1, False)
    recorder.add_outcome(
        Outcome(SITE, PROGRAM, Status.UNUSED, written=1, compiled=0, reason=Reason.UNUSED)
    )
    recorder.add_compilation(Compilation(PROGRAM, 3, (z,), 10, 20, False, 4, 99, (True,), ("z",)))
    recorder.start_counting_runs(PROGRAM)
    recorder.ran(PROGRAM)
    recorder.stale(looped)
    hanging = single, -1, 4, "MainThread", 10**10, (Frame("bessel", "a.py", 3),)
    frozen = recorder.freeze(cells=["<cell>"], environment={"jax": "0.0"}, running=[hanging])
    part = Part(PartKind.HOST, "bessel", Frame("bessel", "a.py", 3), 60, 70, 9, 1)
    idle = Part(PartKind.IDLE, "", None, 40, 0, 0)
    lanes = (Lane("wall time", (0, 60, 0, 60, 40, 1)), Lane("main thread", ()))
    profile = Profile(4, 100, (part, idle), lanes, frozen.compilations, 50, 300, 10**6)
    return dataclasses.replace(frozen, profile=profile, numbers={"<other>": 21})


def raw(recording, tmp_path, suffix=".jaxcb"):
    path = tmp_path / f"recording{suffix}"
    recording.save(path)
    return path.read_bytes()


def compact(*header, then=b""):
    """Return a compact file with this schema, size of the facts, and number of calls."""
    return gzip.compress(HEADER.pack(b"jaxcb\r\n", *header) + then, mtime=0)


def reading(content, tmp_path, **options):
    path = tmp_path / "given"
    path.write_bytes(content)
    return load(path, **options)


@SUFFIXES
def test_everything_comes_back(tmp_path, suffix):
    recording = recorded()
    path = tmp_path / f"a{suffix}"
    recording.save(path)
    back = load(path)
    for field in dataclasses.fields(recording):
        wanted = getattr(recording, field.name)
        if field.name == "calls":
            assert back.calls.dtype == wanted.dtype and np.array_equal(back.calls, wanted)
        elif field.name == "lowered":  # compared by identity
            assert [*map(dataclasses.astuple, back.lowered)] == [*map(dataclasses.astuple, wanted)]
        else:
            assert getattr(back, field.name) == wanted
    assert [site.source for site in back.bound] == [SITE.source]
    assert back.not_finite == (NotFinite(0, 1, 2),) and back.profile.of_kind("host") == 60
    assert not back.calls.flags.writeable
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_file_holds_nothing_that_has_its_default():
    assert set(json.loads(Recording().to_json())) == {"schema", "calls"}
    data = json.loads(recorded().to_json())
    assert set(data["outcomes"][0]) == {
        "site", "program", "status", "written", "compiled", "reason",
    }  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [b"", b"\x80\x04\x95pickle", b"PK\x03\x04", b"[1, 2]", b'{"schema": "8"}', b'{"a": []}'],
)
def test_file_that_is_not_a_recording_is_reported(content, tmp_path):
    """There is no version to install that wrote it."""
    with pytest.raises(RecordingFileError, match=r"not a recording\. Pass .*; timelines .* cannot"):
        reading(content, tmp_path)


@SUFFIXES
def test_file_that_is_truncated_anywhere_is_reported(suffix, tmp_path):
    content = raw(recorded(), tmp_path, suffix)
    for end in range(1, len(content) - 1, 7):
        with pytest.raises(RecordingFileError):
            reading(content[:end], tmp_path)
    with pytest.raises(RecordingFileError, match="truncated"):
        reading(content[:-3], tmp_path)


@SUFFIXES
@pytest.mark.parametrize("schema", [SCHEMA - 1, SCHEMA + 1])
def test_error_for_another_schema_says_to_install_its_version(suffix, schema, tmp_path):
    packed = suffix == ".jaxcb"
    content = compact(schema, 0, 0) if packed else f'{{"schema": {schema}}}'.encode()
    wanted = rf"schema {schema}: .* reads schema {SCHEMA}, so install the version that wrote it"
    with pytest.raises(RecordingFileError, match=wanted):
        reading(content, tmp_path)


@pytest.mark.parametrize(("facts", "rows"), [(10, 10**9), (2**63, 0), (0, 2**64 - 1)])
def test_no_memory_is_allocated_for_a_billion_rows_in_a_header(facts, rows, tmp_path):
    with pytest.raises(RecordingFileError, match=r"more than the limit.*limit_bytes=\d+"):
        reading(compact(SCHEMA, facts, rows), tmp_path)


def test_large_file_is_read_if_the_limit_allows_it(tmp_path):
    recording = recorded(elements=1000)
    for suffix in (".jaxcb", ".json"):
        content = raw(recording, tmp_path, suffix)
        with pytest.raises(RecordingFileError, match="limit_bytes="):
            reading(content, tmp_path, limit_bytes=5_000)
        assert len(reading(content, tmp_path, limit_bytes=900_000)) == len(recording)


HOSTILE = {
    "a number for the line of a site": lambda d: d["lowered"][0]["site"].update(line="<script>"),
    "true for a number": lambda d: d["lowered"][0].update(index=True),
    "an unknown status": lambda d: d["outcomes"][0].update(status="eaten"),
    "an unknown field": lambda d: d["outcomes"][0].update(__class__="os"),
    "a sentence for a reason": lambda d: d["outcomes"][0].update(reason="nothing uses its result"),
    "a list for a reason": lambda d: d["outcomes"][0].update(reason=["unused"]),
    "a number for a note": lambda d: d["outcomes"][0].update(notes=[7]),
    "a sentence for a note": lambda d: d["outcomes"][0].update(notes=[["a sentence"]]),
    "a string for a shape": lambda d: d["outcomes"][0].update(notes=[["unbatched", ["3"]]]),
    "a string for a use": lambda d: d["outcomes"][0].update(notes=[["uses_jax", [], "max"]]),
    "nothing for a string": lambda d: d["outcomes"][0].update(detail=None),
    "a number for true": lambda d: d["outcomes"][0].update(unrolled=1),
    "a missing field": lambda d: d["outcomes"][0].pop("program"),
    "a list that is too long": lambda d: d["compilations"][0].extend([1, 2, 3]),
    "columns of several lengths": lambda d: d["calls"]["element"].append(1),
    "a column of fractions": lambda d: d["calls"].update(element=[0.5] * 7),
    "a column of strings": lambda d: d["calls"].update(element=["a"] * 7),
    "false in a column": lambda d: d["calls"]["element"].__setitem__(0, False),
    "a list in a column": lambda d: d["calls"]["element"].__setitem__(0, []),
    "a number that does not fit": lambda d: d["calls"]["thread"].__setitem__(0, 2**40),
    "a call of a missing site": lambda d: d["calls"]["lowered"].__setitem__(0, 9),
    "a call on a missing thread": lambda d: d["calls"]["thread"].__setitem__(0, 9),
    "a missing error": lambda d: d["calls"]["error"].__setitem__(0, 9),
    "a huge integer": lambda d: d.update(wall_ns=10**30),
    "a string instead of the errors": lambda d: d.update(errors="none"),
    "a missing stale site": lambda d: d.update(stale=[5]),
    "levels that do not match the operands": lambda d: d["lowered"][1]["levels"][0].__setitem__(
        2, []
    ),
    "a name too many": lambda d: d["lowered"][1].update(operand_names=["x", "y"]),
    "a sample of a missing site": lambda d: d["sample_values"][0].__setitem__(0, 5),
    "a running call before the first site": lambda d: d["running"][0].__setitem__(0, -1),
    "an environment of numbers": lambda d: d.update(environment={"jax": 1}),
    "cells with texts for numbers": lambda d: d.update(numbers={"<other>": "21"}),
    "binds that are no pairs": lambda d: d["bound"][0].append(1),
    "a profile of a word": lambda d: d.update(profile="slow"),
    "a part of a missing site": lambda d: d["profile"][2][0].__setitem__(6, 9),
    "a span of a missing part": lambda d: d["profile"][3][0][1].__setitem__(2, 2),
    "a span that is cut": lambda d: d["profile"][3][0][1].pop(),
    "a span before the block": lambda d: d["profile"][3][0][1].__setitem__(0, -1),
    "an unknown top-level key": lambda d: d.update(more=1),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_unexpected_value_is_named(change):
    data = json.loads(recorded().to_json())
    change(data)
    with pytest.raises(RecordingFileError, match=r"cannot read this recording: .*, expected "):
        Recording.from_json(json.dumps(data))
