"""A damaged file is a RecordingFileError that names it, or every report of it can be made.

JAXCB_DAMAGED=100000 tries as many files of each kind, and JAXCB_SEED=7 others.
"""

import copy
import gzip
import json
import os
import random

import pytest

from tests.interface import RecordingFileError, load, main

from ._everything import WHOLE, brief_reports, everything, reports

pytestmark = [pytest.mark.kept, pytest.mark.filterwarnings("error")]

TRIES = int(os.environ.get("JAXCB_DAMAGED", "60"))
SEED = int(os.environ.get("JAXCB_SEED", "0"))
DATA = json.loads(WHOLE)
NUMBERS = [-1, 0, 1, 2, 3, 7, 255, 10**6, 10**9, 2**64, 10**400]
NUMBERS += [sign * 2**bits for bits in (31, 53, 60, 62, 63) for sign in (1, -1)]
NUMBERS += [2**bits - 1 for bits in (31, 53, 60, 62, 63)]
OTHERS = [None, True, "", "x", [], {}, [[]], [1], {"a": 1}, 0.5, float("nan"), float("inf")]
OTHERS += ["x" * 999, [2**59] * 300, [2] * 5000, ["x"] * 50, [10**18], [-1], [True]]


def places(data, path=()):
    """Yield the path of each value in parsed JSON."""
    steps = enumerate(data) if isinstance(data, list) else ()
    for step, one in data.items() if isinstance(data, dict) else steps:
        yield (*path, step)
        yield from places(one, (*path, step))


def by_kind(data):
    """Return the paths, those in lists of the same field together."""
    found = {}
    for path in places(data):
        kind = tuple("" if type(step) is int and n < 2 else step for n, step in enumerate(path))
        found.setdefault(kind, []).append(path)
    return list(found.values())


def at(data, path):
    for step in path:
        data = data[step]
    return data


def damage(data, kinds, draw):
    """Change one value of `data`, if a change before has left its place."""
    path = draw.choice(draw.choice(kinds))
    try:
        holder, old = at(data, path[:-1]), at(data, path)
    except (KeyError, IndexError, TypeError):
        return
    if isinstance(holder, str):
        return
    way = draw.random()
    if way < 0.15:
        del holder[path[-1]]
    elif way < 0.3 and isinstance(old, list) and old:
        old += [draw.choice(old)] * draw.choice([1, 2, 100])
    elif way < 0.4:
        holder[path[-1]] = copy.deepcopy(at(DATA, draw.choice(draw.choice(by_kind(DATA)))))
    else:
        holder[path[-1]] = draw.choice(NUMBERS if type(old) is int or way < 0.5 else OTHERS)


def bytes_damaged(content, draw):
    """Return `content` with some bytes flipped, removed, added or cut off."""
    found = bytearray(content)
    for _ in range(draw.choice([1, 1, 2, 5])):
        place = draw.randrange(len(found) + 1)
        more = draw.choice([b"", b"9", b"9" * 5000, b'"', b"[", b"\\ud800", b"\xff", b"NaN", b"-1"])
        found[place : place + draw.choice([0, 1, 1, 2, 40])] = more
    return bytes(found[: draw.choice([None] * 5 + [draw.randrange(len(found) + 1)])])


def examine(content, path, full):
    """Read a file, and make every report of it."""
    path.write_bytes(content)
    try:
        recording = load(path)
    except RecordingFileError as error:
        assert repr(str(path)) in str(error)
        return
    (reports if full else brief_reports)(recording)
    if full:
        recording.to_pandas()


@pytest.mark.parametrize("number", range(0, TRIES, 20))
def test_damaged_values_are_refused_or_reported(number, tmp_path):
    kinds = by_kind(DATA)
    for seed in range(number, number + 20):
        draw, data = random.Random(f"{SEED} {seed}"), copy.deepcopy(DATA)
        for _ in range(draw.choice([1, 1, 1, 2, 4])):
            damage(data, kinds, draw)
        examine(json.dumps(data).encode(), tmp_path / "run.json", seed % 10 == 0)


@pytest.mark.parametrize("number", range(0, TRIES, 20))
@pytest.mark.parametrize("kind", ["json", "packed", "unpacked"])
def test_damaged_bytes_are_refused_or_reported(number, kind, tmp_path):
    everything().save(tmp_path / "whole.jaxcb")
    packed = (tmp_path / "whole.jaxcb").read_bytes()
    content = {"json": WHOLE.encode(), "packed": packed, "unpacked": gzip.decompress(packed)}[kind]
    for seed in range(number, number + 20):
        found = bytes_damaged(content, random.Random(f"{SEED} {kind} {seed}"))
        examine(gzip.compress(found) if kind == "unpacked" else found, tmp_path / "run", False)


DAMAGES = {
    "a time before the clock": lambda d: d["calls"]["start_ns"].__setitem__(0, -(2**63)),
    "a time that is too late": lambda d: d["calls"]["end_ns"].__setitem__(0, 2**63 - 1),
    "a time in the queue": lambda d: d["calls"]["queued_ns"].__setitem__(0, 2**63 - 1),
    "durations that add up": lambda d: d["calls"].update(
        start_ns=[0] * len(d["calls"]["end_ns"]), end_ns=[2**62] * len(d["calls"]["end_ns"])
    ),
    "a shape of 5,000 digits": lambda d: d["lowered"][0]["operands"][1].__setitem__(
        0, [3, *[2**62] * 280]
    ),
    "a negative shape": lambda d: d["lowered"][0]["results"][0].__setitem__(0, [-3]),
    "a batch of 5,000 digits": lambda d: d["lowered"][0].update(
        levels=[[2**50, *d["lowered"][0]["levels"][0][1:]]] * 400
    ),
    "a count that is too large": lambda d: d["not_kept"][0].__setitem__(2, 2**63 - 1),
    "counts that add up": lambda d: d.update(not_kept=[[0, 0, 2**59, 0, 0]] * 20),
    "a compilation that took centuries": lambda d: d["compilations"][0].__setitem__(4, 2**63 - 1),
}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_value_that_no_report_can_show_is_named(change, tmp_path):
    data = copy.deepcopy(DATA)
    change(data)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(data))
    with pytest.raises(RecordingFileError, match=r"run\.json'.*cannot read .*, expected "):
        load(path)


def test_command_names_the_damaged_file_without_a_traceback(tmp_path, capsys):
    data = copy.deepcopy(DATA)
    DAMAGES["a time before the clock"](data)
    path = tmp_path / "run\x1b[2J.json"
    path.write_text(json.dumps(data))
    for out in ("-", str(tmp_path / "out.html"), str(tmp_path / "out.csv")):
        with pytest.raises(SystemExit) as raised:
            main(["export", str(path), out])
        assert raised.value.code == 2
        said = capsys.readouterr().err
        assert r"run\x1b[2J.json" in said and "calls.start_ns is -9223372036854775808" in said
        assert "Traceback" not in said and "\x1b" not in said
