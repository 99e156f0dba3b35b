"""Reading a file takes no more memory than its limit, whatever the file holds."""

import gzip
import json
import re
import tracemalloc

import numpy as np
import pytest

from jupyter_jaxcb.recording import SCHEMA, Recording, RecordingFileError, load

from .test_files import HEADER

pytestmark = pytest.mark.slow

EMPTY = Recording().to_json()
SITE = json.dumps(
    {"flavor": "io", "function": "f", "file": "x", "line": 1, "column": 0, "cell": True}
)
LOWERED = '{"site": 0, "program": null, "index": 0, "operands": [%s], "results": []}'
OF_KEYS = {count: str({str(n): 0 for n in range(count)}).replace("'", '"') for count in (6, 11, 22)}


def with_many(field, item, times=20_000, **others):
    """Return the JSON of a recording with `times` copies of `item` in `field`."""
    text = EMPTY
    for name, other in others.items():
        text = text.replace(f'"{name}": []', f'"{name}": [{other}]', 1)
    return text.replace(f'"{field}": []', f'"{field}": [{",".join([item] * times)}]', 1).encode()


TEXTS = {
    "empty lists": with_many("sites", "[]"),
    "lists in lists": with_many("sites", "[[0]]"),
    "empty objects": with_many("sites", "{}"),
    "objects": with_many("sites", '{"a":0}'),
    "objects of few keys": with_many("sites", OF_KEYS[6], 5_000),
    "objects of some keys": with_many("sites", OF_KEYS[11], 3_000),
    "objects of more keys": with_many("sites", OF_KEYS[22], 2_000),
    "wide texts": with_many("sites", '"\U0001f600"'),
    "texts, one of them wide": with_many("errors", f'"{"a" * 40}"', times=9_000, threads='"é"'),
    "escaped texts": with_many("errors", f'"{"a" * 40}\\ud83d\\ude00"', times=9_000),
    "fractions": with_many("sites", "1.5"),
    "numbers": with_many("element", "70000", times=40_000),
    "small numbers": with_many("element", "7", times=60_000),
    "errors": with_many("errors", '"ab"'),
    "sites": with_many("sites", SITE, times=5_000),
    "avals": with_many("lowered", LOWERED % ",".join(['[[1],"a"]'] * 500), times=30, sites=SITE),
    "not finite": with_many("not_finite", "[0,999,888]", sites=SITE, lowered=LOWERED % ""),
    "one long text in a column": with_many("element", '"a"', 2_000).replace(
        b'"a"', b'"%s"' % (b"a" * 10_000), 1
    ),
}


def as_file(text, tmp_path):
    path = tmp_path / "given.json"
    path.write_bytes(text)
    return path


def compact(text):
    """Return the compact file of these facts, without calls."""
    facts = text.partition(b', "calls": {')[0] + b"}"
    return gzip.compress(HEADER.pack(b"jaxcb\r\n", SCHEMA, len(facts), 0) + facts)


def reported_limit(path):
    with pytest.raises(RecordingFileError, match=r"more than the limit") as raised:
        load(path, limit_bytes=1_000)
    found = re.search(r"load\(path, limit_bytes=(\d+)\)", str(raised.value))
    return int(found[1])


def peak_of_loading(path, limit):
    """Return the bytes that loading took, and whether the limit prevented it."""
    tracemalloc.start()
    try:
        load(path, limit_bytes=limit)
    except RecordingFileError as error:
        return tracemalloc.get_traced_memory()[1], "more than the limit" in str(error)
    else:
        return tracemalloc.get_traced_memory()[1], False
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_peak_memory_stays_within_the_limit_that_the_error_names(text, tmp_path):
    limit = reported_limit(path := as_file(text, tmp_path))
    assert peak_of_loading(path, limit - 1)[1]
    peak, refused = peak_of_loading(path, limit)
    assert not refused
    assert peak < 1.2 * limit


@pytest.mark.parametrize("text", [TEXTS["objects"], TEXTS["lists in lists"]], ids=["{", "["])
def test_limit_also_holds_for_compact_files(text, tmp_path):
    path = as_file(compact(text), tmp_path)
    limit = reported_limit(path)
    peak, refused = peak_of_loading(path, limit)
    assert not refused and peak < 1.2 * limit
    peak, refused = peak_of_loading(path, limit // 20)
    assert refused and peak < limit // 20 * 1.2


def test_million_calls_are_read_within_the_default_limit(tmp_path):
    calls = np.zeros(1_000_000, Recording().calls.dtype)
    calls["start_ns"] = calls["end_ns"] = 1_700_000_000_000_000_000 + np.arange(len(calls))
    calls["crossing"] = np.arange(len(calls))
    facts = with_many("lowered", LOWERED % "", times=1, sites=SITE, threads='"é\\n"')
    recording = Recording.from_json(facts.decode())
    object.__setattr__(recording, "calls", calls)
    for suffix in (".json", ".jaxcb"):
        recording.save(tmp_path / f"million{suffix}")
        assert np.array_equal(load(tmp_path / f"million{suffix}").calls, calls)


def test_error_does_not_copy_a_large_value(tmp_path):
    path = as_file(with_many("errors", "[]", times=50_000), tmp_path)
    tracemalloc.start()
    with pytest.raises(RecordingFileError, match=r"errors is \[\], expected a string"):
        load(path)
    text = EMPTY.replace('"errors": []', '"errors": 5').replace(
        '"sites": []', f'"sites": {{{"0" * 3_000_000!r}: 1}}'.replace("'", '"')
    )
    path = as_file(text.encode(), tmp_path)
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    with pytest.raises(RecordingFileError, match=r"sites is .*, expected a list"):
        load(path)
    taken = tracemalloc.get_traced_memory()[1] - before
    tracemalloc.stop()
    assert taken < 3.2 * len(text)


def test_limit_of_a_compact_file_covers_calls_and_facts_together(tmp_path):
    text = with_many("lowered", LOWERED % "", 2_000, sites=SITE, threads='"a"')
    recording = Recording.from_json(text.decode())
    calls = np.zeros(100_000, recording.calls.dtype)
    object.__setattr__(recording, "calls", calls)
    recording.save(path := tmp_path / "both.jaxcb")
    _, _, facts_bytes, rows = HEADER.unpack_from(gzip.decompress(path.read_bytes()))
    with pytest.raises(RecordingFileError, match=r"more than the limit") as raised:
        load(path, limit_bytes=2 * rows * calls.itemsize + facts_bytes)
    needed = int(re.search(r"limit_bytes=(\d+)", str(raised.value))[1])
    assert peak_of_loading(path, needed - 1)[1]
    assert not peak_of_loading(path, needed)[1]
