"""The documented schema matches the files that recordings write."""

import contextlib
import dataclasses
import enum
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import (
    Frame,
    Lane,
    MaskUse,
    NotKept,
    ObjectUse,
    Part,
    PartKind,
    Profile,
    QueueUse,
    Recording,
    RecordingFileError,
    Running,
)


def full():
    """Return a recording in which no field is empty."""
    double = jaxcb.pure(lambda x: 2 * x, result="x", executor="threads")
    unused = jaxcb.pure(lambda x: x, result="x")

    def failing(x):
        if x > 1:
            raise ValueError("no luck")
        return np.float32(np.nan)

    nan = jaxcb.pure(failing, result="x")
    with jaxcb.record() as r:
        jax.jit(jax.vmap(lambda x: (unused(x), double(x))[1]))(jnp.arange(3.0)).block_until_ready()
        nan(np.float32(0))
        with pytest.raises(jax.errors.JaxRuntimeError):
            nan(np.float32(2))
    hanging = Running(0, 2, 7, "worker", 10**10, (Frame("f", "a.py", 3),))
    return dataclasses.replace(
        r.recording,
        running=(hanging,),
        not_kept=(NotKept(0, 0, 3, 1, 500),),
        queue=(QueueUse(0, 1, 10**9, 2, 3, 4),),
        masks=(MaskUse(0, 12, 5),),
        objects=(ObjectUse("factor", 1, 40, 0, 10**8, 4 * 10**9, 10**6, 5000),),
        stale=frozenset([0]),
        cells=("<cell>",),
        numbers={"<other>": 21},
        not_observed=2,
        compiled_ns=1,
        profile=Profile(
            0, 9, (Part(PartKind.HOST, "f", Frame("f", "a.py", 3), 9, 9, 3, 0),),
            (Lane("wall time", (0, 9, 0)),), r.recording.compilations, 10, 300, 10**6,
        ),
    )  # fmt: skip


@pytest.fixture(scope="module")
def recording():
    return full()


@pytest.fixture(scope="module")
def check(json_schema):
    import jsonschema  # takes longer than these tests, and every worker imports this file

    jsonschema.Draft202012Validator.check_schema(json_schema)
    return jsonschema.Draft202012Validator(json_schema)


@pytest.mark.long
def test_schema_has_exactly_the_keys_that_a_recording_writes(recording, check):
    data = json.loads(recording.to_json())
    unset = {field.name for field in dataclasses.fields(recording)} - set(data)
    assert unset <= {"ahead", "late_ns"}  # otherwise nothing would be compared
    check.validate(data)
    check.validate(json.loads(Recording().to_json()))


def test_every_fact_has_a_meaning_and_is_on_the_page(from_code, pages):
    for kind in from_code.reached():
        assert set(from_code.fields(kind)) <= set(from_code.meanings(kind))
        section = pages["schema.md"].partition(f"\n## {kind.__name__}\n")[2].partition("\n## ")[0]
        rows = section.split("\n| ")
        is_enum = issubclass(kind, enum.Enum)
        values = [member.value for member in kind] if is_enum else from_code.fields(kind)
        for name in values:
            assert any(row.startswith(f"`{name}` |") for row in rows)


def paths(data, path=()):
    """Yield the paths to all values in a JSON value."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from paths(value, (*path, key))


def changed(data, path, value):
    copy = json.loads(json.dumps(data))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


@pytest.mark.long
@pytest.mark.parametrize("value", [None, False, -1, 3, 0.5, "x", [], {}], ids=repr)
def test_every_accepted_file_matches_the_schema(value, recording, check):
    """With `value` at each path in turn, `from_json` accepts nothing that the schema refuses."""
    data = json.loads(recording.to_json())
    accepted = []
    for path in paths(data):
        other = changed(data, path, value)
        with contextlib.suppress(RecordingFileError):
            Recording.from_json(json.dumps(other))
            accepted.append((path, other))
    assert [path for path, other in accepted if not check.is_valid(other)] == []
