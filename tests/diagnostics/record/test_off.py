"""With JUPYTER_JAXCB=off, programs run and nothing is recorded."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import active


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


@pytest.mark.parametrize("word", ["", "on", "offline"])
def test_other_values_do_not_turn_recording_off(word, monkeypatch):
    monkeypatch.setenv("JUPYTER_JAXCB", word)
    with jaxcb.record() as r:
        jaxcb.pure(lambda x: x, result="x")(1.0)
    assert len(r.recording) == 1


def test_off_raises_the_error_of_the_block(monkeypatch):
    monkeypatch.setenv("JUPYTER_JAXCB", "off")
    with pytest.raises(KeyError), jaxcb.record() as r:
        raise KeyError
    assert len(r.recording) == 0


def test_explain_works_when_recording_is_off(monkeypatch):
    monkeypatch.setenv("JUPYTER_JAXCB", "off")
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    assert jaxcb.explain(lambda x: double(x))(1.0).outcomes[0].status == "kept"
