"""When the log is full, the recorder still counts calls, crossings, failures and time per site."""

import jax
import pytest

import jupyter_jaxcb as jaxcb
from tests._threads import in_threads
from tests.interface import LoweredSite, Recorder, Site, record_call, summarize, to_html, to_text
from tests.report._several import data_of


def counted(name, calls, fails_after=None):
    """Return a callback whose host function appends its name to `calls`."""

    def host(x):
        calls.append(name)
        if fails_after and len(calls) > fails_after:
            raise ValueError("no luck")
        return x

    host.__name__ = name
    return jaxcb.pure(host, result="x", vmap_method="sequential")


def summaries(recording):
    return {row.site.function: row for row in summarize(recording)}


def test_calls_without_a_row_are_counted_also_of_a_site_first_called_after_the_log_was_full():
    a, b = counted("a", []), counted("b", [])

    @jax.jit
    def f(x):
        x = jax.lax.fori_loop(0, 10, lambda i, x: a(x) + 1, x)
        return b(x)

    with jaxcb.record(capacity=5) as r:
        f(1.0).block_until_ready()
    found = summaries(r.recording)
    assert (found["a"].calls, found["b"].calls) == (found["a"].expected, found["b"].expected)
    assert (found["a"].calls, found["b"].calls) == (10, 1)
    assert [str(found[name].status) for name in "ab"] == ["kept", "kept"]
    assert (len(r.recording), r.recording.overflow) == (5, 6)
    assert repr(r.recording) == "<Recording of 11 host calls (5 kept) from 2 sites>"
    words = "the log was full: 6 calls were counted but not logged"
    assert "10 calls" in to_text(r.recording)
    assert words in to_text(r.recording) and words in to_html(r.recording)
    assert data_of(r.recording)[0]["full"] == words


def test_failure_past_the_end_of_the_log_is_reported():
    calls = []
    a, b = counted("a", calls, fails_after=8), counted("b", [])

    @jax.jit
    def f(x):
        x = jax.lax.fori_loop(0, 10, lambda i, x: a(x), x)
        return jax.lax.cond(x > 100, b, lambda x: x, x)

    with jaxcb.record(capacity=5) as r, pytest.raises(Exception, match="no luck"):
        f(1.0).block_until_ready()
    found = summaries(r.recording)
    assert found["a"].calls == len(calls) == 9
    assert found["a"].errors == ("ValueError: no luck",)
    assert "error" in found["b"].reason


@pytest.mark.parametrize("capacity", [10, 50_000])
def test_no_call_of_many_threads_is_lost_or_torn(capacity):
    recorder = Recorder(capacity=capacity)
    facts = [
        LoweredSite(Site("pure", name, "f.py", 1, 0, False), None, 0, (), ()) for name in "abcd"
    ]

    def call(number):
        for step in range(5_000):
            record_call(recorder, facts[number], number + 1, step, step + number)

    in_threads(call, [0, 1, 2, 3] * 2)
    recording = recorder.freeze()
    assert {name: row.calls for name, row in summaries(recording).items()} == dict.fromkeys(
        "abcd", 10_000
    )
    assert len(recording) == min(capacity, 40_000) == 40_000 - recording.overflow
    assert len(set(recording.calls["crossing"].tolist())) == len(recording)
    for call in recording:
        assert recording.lowered[call.lowered].site.function == "abcd"[call.version - 1]
        assert call.end_ns - call.start_ns == call.version - 1
