"""Recordings survive saving and loading; damaged and hostile files are reported."""

import dataclasses
import gzip
import json
import struct
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_jaxcb.recording import SCHEMA, WHOLE_BATCH, Recording
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
    return dataclasses.replace(frozen, profile=profile)


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
    assert back.to_json() == recording.to_json()
    assert back.calls.dtype == recording.calls.dtype
    assert np.array_equal(back.calls, recording.calls)
    assert back.not_finite == (NotFinite(0, 1, 2),)
    assert back.not_finite_calls == recording.not_finite_calls != ()
    assert back.profile == recording.profile and back.profile.of_kind("host") == 60
    assert back.running == recording.running and back.running[0].stack[0].line == 3
    assert back.stale == {1} and back.compilations == recording.compilations
    assert not back.calls.flags.writeable
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_compact_file_of_many_calls_is_small(tmp_path):
    recording = recorded(elements=200_000)
    content = raw(recording, tmp_path)
    assert np.array_equal(reading(content, tmp_path).calls, recording.calls)
    assert len(content) < len(recording) * 8  # 48 bytes each in memory


@pytest.mark.parametrize(
    "content", [b"", b"\x80\x04\x95pickle", b"PK\x03\x04", b"<html>", b"[1, 2]", b"\x89jaxcb\n"]
)
def test_file_that_is_not_a_recording_is_reported(content, tmp_path):
    with pytest.raises(RecordingFileError, match="it is not a recording"):
        reading(content, tmp_path)


@SUFFIXES
def test_file_that_is_truncated_anywhere_is_reported(suffix, tmp_path):
    content = raw(recorded(), tmp_path, suffix)
    for end in range(1, len(content) - 1, 7):
        with pytest.raises(RecordingFileError):
            reading(content[:end], tmp_path)
    with pytest.raises(RecordingFileError, match="truncated"):
        reading(content[:-3], tmp_path)


@settings(max_examples=300)
@given(data=st.data())
@pytest.mark.parametrize("suffix", [".jaxcb", ".json"])
def test_changed_byte_is_reported_or_gives_a_recording_that_can_be_saved(
    suffix, data, tmp_path_factory
):
    tmp_path = tmp_path_factory.mktemp("changed")
    content = bytearray(raw(recorded(), tmp_path, suffix))
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    try:
        back = reading(bytes(content), tmp_path)
    except RecordingFileError:
        return
    # zlib can pack the same data differently; checksums detect all other changes.
    if suffix == ".jaxcb":
        assert back.to_json() == recorded().to_json()
    assert Recording.from_json(back.to_json()).to_json() == back.to_json()
    list(back)


@SUFFIXES
def test_error_for_a_newer_schema_says_to_update(suffix, tmp_path):
    content = raw(recorded(), tmp_path, suffix)
    if suffix == ".json":
        content = content.replace(b'"schema": 9', b'"schema": 10')
    else:
        content = compact(10, 0, 0)
    with pytest.raises(RecordingFileError, match=r"schema 10: .* reads schema 5 to 9\. Update"):
        reading(content, tmp_path)


def in_schema(recording, number):
    """Return the JSON of a recording as an older version wrote it."""
    written = json.loads(recording.to_json()) | {"schema": number}
    for fact in written["lowered"]:
        fact["levels"] = [[size, method[0], batched] for size, method, batched, _ in fact["levels"]]
    if number < 8:
        del written["objects"]
    if number < 9:
        del written["not_finite_calls"]
    return written


def test_file_of_schema_6_has_only_the_names_of_vmap_methods():
    methods = [*VMAP_METHODS.values(), WHOLE_BATCH]
    levels = tuple(VmapLevel(2, method, (True,)) for method in methods)
    recording = recorded()
    facts = tuple(dataclasses.replace(fact, levels=levels) for fact in recording.lowered)
    written = in_schema(dataclasses.replace(recording, lowered=facts), 6)
    assert Recording.from_json(json.dumps(written)).lowered[1].levels == levels
    written["lowered"][0]["levels"][0][1] = 5
    with pytest.raises(RecordingFileError, match=r"levels\.vmap_method is 5, expected a string"):
        Recording.from_json(json.dumps(written))


def test_file_of_schema_5_has_no_weak_types_and_names_of_arguments():
    written = in_schema(recorded(), 5)
    in_profile = written["profile"][Profile._fields.index("compilations")]
    for one in (*written["compilations"], *in_profile):
        del one[Compilation._fields.index("weak") :]
    (one,) = Recording.from_json(json.dumps(written)).compilations
    assert one == recorded().compilations[0]._replace(weak=(), names=())


@pytest.mark.parametrize("field", ["weak", "names"])
def test_weak_types_and_names_are_those_of_each_argument(field):
    recording = recorded()
    (one,) = recording.compilations
    twice = one._replace(**{field: getattr(one, field) * 2})
    for wrong in (
        dataclasses.replace(recording, compilations=(twice,)),
        dataclasses.replace(recording, profile=recording.profile._replace(compilations=(twice,))),
    ):
        with pytest.raises(RecordingFileError, match=f"compilations.{field} is .* 1 or none"):
            Recording.from_json(wrong.to_json())


@SUFFIXES
def test_older_schema_is_not_reported_as_damage(suffix, tmp_path):
    """In schema 1, before executors, a host call took 40 bytes: it had no `queued_ns`."""
    content = raw(recorded(), tmp_path, suffix)
    if suffix == ".json":
        old = json.loads(content) | {"schema": 1}
        del old["calls"]["queued_ns"], old["workers"], old["processes"]
        content = json.dumps(old).encode()
    else:
        content = compact(1, 0, 0)
    with pytest.raises(RecordingFileError, match=r"schema 1: .* Install the version that wrote it"):
        reading(content, tmp_path)


@pytest.mark.parametrize("content", [b"{}", b'{"schema": "8"}', b'{"traceEvents": []}'])
def test_json_without_the_number_of_a_schema_is_said_to_be_no_recording(content, tmp_path):
    """There is no version to install that wrote it."""
    with pytest.raises(RecordingFileError, match=r"not a recording\. Pass .*; timelines .* cannot"):
        reading(content, tmp_path)


@pytest.mark.parametrize(("facts", "rows"), [(10, 10**9), (2**63, 0), (0, 2**64 - 1)])
def test_no_memory_is_allocated_for_a_billion_rows_in_a_header(facts, rows, tmp_path):
    with pytest.raises(RecordingFileError, match=r"more than the limit.*limit_bytes=\d+"):
        reading(compact(SCHEMA, facts, rows), tmp_path)


def test_missing_rows_are_reported_as_truncation(tmp_path):
    facts = json.dumps({"schema": SCHEMA}).encode()
    with pytest.raises(RecordingFileError, match="truncated"):
        reading(compact(SCHEMA, len(facts), 1_000_000, then=facts), tmp_path)


def test_more_than_the_header_says_is_not_unpacked(tmp_path):
    content = compact(SCHEMA, 100, 0, then=bytes(50_000_000))
    tracemalloc.start()
    try:
        with pytest.raises(RecordingFileError, match="extra bytes at its end"):
            reading(content, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_extra_bytes_at_the_end_are_reported(tmp_path):
    with pytest.raises(RecordingFileError, match="damaged"):
        reading(raw(recorded(), tmp_path) + b"x", tmp_path)


def test_other_gzip_file_is_not_a_recording(tmp_path):
    with pytest.raises(RecordingFileError, match="does not contain a recording"):
        reading(gzip.compress(b"a text that is as long as the header"), tmp_path)


def test_large_file_is_read_if_the_limit_allows_it(tmp_path):
    recording = recorded(elements=1000)
    for suffix in (".jaxcb", ".json"):
        content = raw(recording, tmp_path, suffix)
        with pytest.raises(RecordingFileError, match="limit_bytes="):
            reading(content, tmp_path, limit_bytes=5_000)
        assert len(reading(content, tmp_path, limit_bytes=900_000)) == len(recording)


@pytest.mark.parametrize("depth", [1_000, 100_000])
def test_deep_json_is_reported(depth, tmp_path):
    with pytest.raises(RecordingFileError):
        reading(b'{"schema": ' + b"[" * depth, tmp_path)
    with pytest.raises(RecordingFileError):
        reading(b'{"schema": ' + b"[" * depth + b"]" * depth + b"}", tmp_path)


HOSTILE = {
    "a number for the line of a site": lambda d: d["sites"][0].update(line="<script>"),
    "a missing site": lambda d: d["lowered"][0].update(site=7),
    "a negative index of a site": lambda d: d["lowered"][0].update(site=-1),
    "true for a number": lambda d: d["lowered"][0].update(index=True),
    "an unknown status": lambda d: d["outcomes"][0].update(status="eaten"),
    "an unknown field": lambda d: d["outcomes"][0].update(__class__="os"),
    "a missing field": lambda d: d["outcomes"][0].pop("program"),
    "a list that is too long": lambda d: d["compilations"][0].extend([1, 2, 3]),
    "columns of several lengths": lambda d: d["calls"]["element"].append(1),
    "a column of fractions": lambda d: d["calls"].update(element=[0.5] * 7),
    "a column of strings": lambda d: d["calls"].update(element=["a"] * 7),
    "a column of true and false": lambda d: d["calls"].update(element=[True] * 7),
    "a ragged column": lambda d: d["calls"].update(element=[[], 1, 1, 1, 1, 1, 1]),
    "a column of columns": lambda d: d["calls"].update(element=[[1]] * 7),
    "false in a column": lambda d: d["calls"]["element"].__setitem__(0, False),
    "a list in a column": lambda d: d["calls"]["element"].__setitem__(0, []),
    "null in a column": lambda d: d["calls"]["element"].__setitem__(0, None),
    "a number that does not fit": lambda d: d["calls"]["thread"].__setitem__(0, 2**40),
    "a call of a missing site": lambda d: d["calls"]["lowered"].__setitem__(0, 9),
    "a call on a missing thread": lambda d: d["calls"]["thread"].__setitem__(0, 9),
    "a missing error": lambda d: d["calls"]["error"].__setitem__(0, 9),
    "a huge integer": lambda d: d.update(overflow=10**30),
    "a string instead of the errors": lambda d: d.update(errors="none"),
    "a missing stale site": lambda d: d.update(stale=[5]),
    "levels that do not match the operands": lambda d: d["lowered"][1]["levels"][0].__setitem__(
        2, []
    ),
    "a name too many": lambda d: d["lowered"][1].update(operand_names=["x", "y"]),
    "a sample of a missing site": lambda d: d["sample_values"][0].__setitem__(0, 5),
    "a running call of a missing site": lambda d: d["running"][0].__setitem__(0, 5),
    "an environment of numbers": lambda d: d.update(environment={"jax": 1}),
    "a profile of a word": lambda d: d.update(profile="slow"),
    "a profile of a missing kind": lambda d: d["profile"][2][0].__setitem__(0, "magic"),
    "a part of a missing site": lambda d: d["profile"][2][0].__setitem__(6, 9),
    "a span of a missing part": lambda d: d["profile"][3][0][1].__setitem__(2, 2),
    "a span that is cut": lambda d: d["profile"][3][0][1].pop(),
    "a span before the block": lambda d: d["profile"][3][0][1].__setitem__(0, -1),
    "a lane without spans": lambda d: d["profile"][3][0].pop(),
    "an unknown top-level key": lambda d: d.update(more=1),
    "no calls": lambda d: d.pop("calls"),
    "no sites": lambda d: d.pop("sites"),
}


def test_file_without_the_names_of_operands_and_results_is_read():
    data = json.loads(recorded().to_json())
    for fact in data["lowered"]:
        del fact["operand_names"], fact["result_names"]
    assert Recording.from_json(json.dumps(data)).lowered[0].operand_names == ()


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_unexpected_value_is_named(change):
    data = json.loads(recorded().to_json())
    change(data)
    with pytest.raises(RecordingFileError, match=r"cannot read this recording: .*, expected "):
        Recording.from_json(json.dumps(data))


def test_integer_of_many_digits_is_reported():
    text = recorded().to_json().replace('"overflow": 0', f'"overflow": {"9" * 5_000}')
    with pytest.raises(RecordingFileError, match="cannot read this recording"):
        Recording.from_json(text)
