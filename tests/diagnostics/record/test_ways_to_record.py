"""Recording with annotations for JAX's profiler, and recording that is turned off."""

import gzip
import json

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import active


@pytest.fixture
def annotations(monkeypatch):
    recorded = []

    class Annotation:
        def __init__(self, name, **facts):
            self.name, self.facts = name, facts

        def __enter__(self):
            recorded.append((self.name, self.facts["flavor"]))

        def __exit__(self, *exc):
            recorded.append("ends")

    monkeypatch.setattr(jax.profiler, "TraceAnnotation", Annotation)
    return recorded


double = jaxcb.pure(lambda x: 2 * x, result="x")


@pytest.mark.parametrize("function", [double, jax.jit(double)], ids=["eager", "jit"])
def test_each_host_call_is_one_annotation(function, annotations):
    with jaxcb.record(annotate=True) as r:
        function(np.float32(1)), function(np.float32(2))
        jax.block_until_ready(jax.vmap(function)(np.arange(3.0)))
    assert annotations == [("host call double", "pure"), "ends"] * 5
    assert len(r.recording) == 5


def test_calls_are_annotated_while_a_block_wants_it(annotations):
    function = jax.jit(double)
    with jaxcb.record():
        for calls in (6, 7):
            for _ in range(5):
                function(1.0).block_until_ready()
            with jaxcb.record(annotate=True):
                function(1.0).block_until_ready()
            assert len(annotations) == 2 * (calls - 5)


def test_calls_are_not_annotated_by_default(annotations):
    with jaxcb.record():
        double(1.0)
        with jaxcb.record(annotate=True), jaxcb.record(annotate=True):
            pass
        double(1.0)
    double(1.0)
    assert annotations == []


def test_profile_of_jax_has_the_host_call(tmp_path):
    @jaxcb.pure(result="x")
    def findable(x):
        return x

    with jax.profiler.trace(str(tmp_path), create_perfetto_trace=True):
        with jaxcb.record(annotate=True):
            jax.jit(findable)(np.float32(1)).block_until_ready()
    (path,) = tmp_path.rglob("perfetto_trace.json.gz")
    events = json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
    assert [e["name"] for e in events if "findable" in e.get("name", "")].count(
        "host call findable"
    ) == 1


@pytest.mark.parametrize("word", ["off", "OFF", " off "])
def test_off_records_nothing_and_changes_no_result(word, monkeypatch):
    monkeypatch.setenv("JUPYTER_JAXCB", word)
    calls = []
    double = jaxcb.pure(lambda x: calls.append(active()) or 2 * x, result="x")
    with jaxcb.record() as r:
        assert jax.jit(double)(np.float32(3)) == 6
    assert calls == [None]
    assert len(r.recording) == 0 and not r.recording.outcomes
    assert r.recording.environment["jax"] == jax.__version__


def test_off_raises_the_error_of_the_block(monkeypatch):
    monkeypatch.setenv("JUPYTER_JAXCB", "off")
    with pytest.raises(KeyError), jaxcb.record() as r:
        raise KeyError
    assert len(r.recording) == 0


def test_explain_works_when_recording_is_off(monkeypatch):
    monkeypatch.setenv("JUPYTER_JAXCB", "off")
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    assert jaxcb.explain(lambda x: double(x))(1.0).outcomes[0].status == "kept"
