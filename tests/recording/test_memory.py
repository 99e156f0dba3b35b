"""Reading a file takes no more memory than its limit, whatever the file holds."""

import dataclasses
import re
import tracemalloc

import numpy as np
import pytest

from jupyter_jaxcb.recording import Recording, RecordingFileError, load

pytestmark = pytest.mark.slow

EMPTY = Recording().to_json()
LOWERED = """{"site": {"flavor": "io", "function": "f", "file": "x", "line": 1, "column": 0,
"cell": true}, "program": null, "index": 0, "operands": [%s], "results": []}"""
OF_KEYS = {count: str({str(n): 0 for n in range(count)}).replace("'", '"') for count in (6, 11, 22)}


def with_many(field, item, times=20_000, **others):
    """Return the JSON of a recording with `times` copies of `item` in `field`."""
    text, many = EMPTY, ",".join([item] * times)
    if field == "element":
        return text.replace('"element": []', f'"element": [{many}]').encode()
    for name, items in {field: many, **others}.items():
        text = text.replace('"calls"', f'"{name}": [{items}], "calls"', 1)
    return text.encode()


TEXTS = {
    "empty lists": with_many("outcomes", "[]"),
    "lists in lists": with_many("outcomes", "[[0]]"),
    "objects": with_many("outcomes", '{"a":0}'),
    "objects of few keys": with_many("outcomes", OF_KEYS[6], 5_000),
    "objects of more keys": with_many("outcomes", OF_KEYS[22], 2_000),
    "wide texts": with_many("errors", '"\U0001f600"'),
    "texts, one of them wide": with_many("errors", f'"{"a" * 40}"', times=9_000, threads='"é"'),
    "escaped texts": with_many("errors", f'"{"a" * 40}\\ud83d\\ude00"', times=9_000),
    "numbers": with_many("element", "70000", times=40_000),
    "sites": with_many("lowered", LOWERED % "", times=5_000),
    "avals": with_many("lowered", LOWERED % ",".join(['[[1],"a"]'] * 500), times=30),
    "not finite": with_many("not_finite", "[0,999,88,7]", lowered=LOWERED % ""),
    "one long text in a column": with_many("element", '"a"', 2_000).replace(
        b'"a"', b'"%s"' % (b"a" * 10_000), 1
    ),
}


def as_file(text, tmp_path):
    path = tmp_path / "given.json"
    path.write_bytes(text)
    return path


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


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_peak_memory_stays_within_the_limit_that_the_error_names(text, tmp_path):
    limit = reported_limit(path := as_file(text, tmp_path))
    assert peak_of_loading(path, limit - 1)[1]
    peak, refused = peak_of_loading(path, limit)
    assert not refused
    assert peak < 1.2 * limit


@pytest.mark.long
def test_million_calls_are_read_within_the_default_limit(tmp_path):
    calls = np.zeros(1_000_000, Recording().calls.dtype)
    calls["start_ns"] = calls["end_ns"] = 1_700_000_000_000_000_000 + np.arange(len(calls))
    calls["crossing"] = np.arange(len(calls))
    facts = with_many("lowered", LOWERED % "", times=1, threads='"é\\n"')
    recording = dataclasses.replace(Recording.from_json(facts.decode()), calls=calls)
    for suffix in (".json", ".jaxcb"):
        recording.save(tmp_path / f"million{suffix}")
        assert np.array_equal(load(tmp_path / f"million{suffix}").calls, calls)
