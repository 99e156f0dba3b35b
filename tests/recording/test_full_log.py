"""When the log is full, the recorder still counts calls, crossings, failures and time per site."""

import json

import jax
import jax.numpy as jnp
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import LoweredSite, Recorder, Recording, Site, merged, record_call
from jupyter_jaxcb.report import Progress, summarize, to_html, to_mimebundle, to_text
from jupyter_jaxcb.testing import HostCalls
from tests._threads import in_threads


def counted(name, calls, fails_after=None):
    """Return a callback whose host function appends its name to `calls`."""

    def host(x):
        calls.append(name)
        if fails_after and len(calls) > fails_after:
            raise ValueError("no luck")
        return x

    host.__name__ = name
    return jaxcb.pure(host, result="x", vmap_method="sequential")


def lowered(name):
    return LoweredSite(Site("pure", name, "f.py", 1, 0, False), None, 0, (), ())


def summaries(recording):
    return {row.site.function: row for row in summarize(recording)}


def test_site_first_called_after_the_log_was_full_is_kept():
    calls = []
    a, b = counted("a", calls), counted("b", calls)

    @jax.jit
    def f(x):
        x = jax.lax.fori_loop(0, 10, lambda i, x: a(x) + 1, x)
        return b(x)

    with jaxcb.record(capacity=5) as r:
        f(1.0).block_until_ready()
    found = summaries(r.recording)
    assert calls.count("a") == found["a"].calls == found["a"].expected == 10
    assert calls.count("b") == found["b"].calls == found["b"].expected == 1
    assert [str(found[name].status) for name in "ab"] == ["kept", "kept"]
    assert (len(r.recording), r.recording.overflow) == (5, 6)
    assert repr(r.recording) == "<Recording of 11 host calls (5 kept) from 2 sites>"


def test_reports_count_calls_without_a_row():
    a = counted("a", [])
    with jaxcb.record(capacity=5) as r:
        for _ in range(7):
            a(1.0)
    words = "the log was full: 2 calls were counted but not logged"
    assert "7 calls" in to_text(r.recording)
    assert words in to_text(r.recording)
    assert words in to_html(r.recording)
    data, _ = to_mimebundle(r.recording)
    (facts,) = (value for key, value in data.items() if key.endswith("+json"))
    assert (facts.get("overflow", 0), facts["not_kept"]) == (0, 2)


def test_batch_that_does_not_fit_counts_as_one_crossing():
    calls = []
    a = counted("a", calls)
    g = jax.jit(jax.vmap(a))
    with jaxcb.record(capacity=6) as r:
        for _ in range(3):
            g(jnp.arange(4.0)).block_until_ready()
    (summary,) = summarize(r.recording)
    assert len(calls) == summary.calls == summary.expected == 12
    assert summary.crossings == 3
    (count,) = r.recording.not_kept
    assert (count.calls, count.crossings, count.error) == (6, 1, 0)


def test_calls_of_workers_are_counted():
    calls = []
    a = jaxcb.pure(counted("a", calls).__wrapped__, result="x", vmap_method="sequential",
                   executor="threads:2")  # fmt: skip
    with jaxcb.record(capacity=6) as r:
        for _ in range(3):
            jax.jit(jax.vmap(a))(jnp.arange(16.0)).block_until_ready()
    (summary,) = summarize(r.recording)
    assert (summary.calls, summary.crossings) == (48, 3)


def test_failure_past_the_end_of_the_log_is_reported():
    calls = []
    a = counted("a", calls, fails_after=8)
    b = counted("b", [])

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


def test_time_of_calls_without_rows_is_summed():
    recorder = Recorder(capacity=1)
    fact = lowered("a")
    for end in (5, 7, 11):
        record_call(recorder, fact, 1, 0, end)
    (summary,) = summarize(recorder.freeze())
    assert (summary.calls, summary.crossings, summary.host_ns) == (3, 3, 23)


def test_window_counts_only_calls_after_its_mark():
    recorder = Recorder(capacity=2)
    first, second = lowered("a"), lowered("b")
    for _ in range(4):
        record_call(recorder, first, 1, 0, 1)
    mark = recorder.mark()
    assert not recorder.touched(mark)
    record_call(recorder, first, 1, 0, 1)
    record_call(recorder, second, 1, 0, 1, "ValueError: b")
    assert recorder.touched(mark)
    found = summaries(recorder.freeze(mark))
    assert {name: (row.calls, row.errors) for name, row in found.items()} == {
        "a": (1, ()),
        "b": (1, ("ValueError: b",)),
    }
    assert summaries(recorder.freeze())["a"].calls == 5


def test_no_call_of_many_threads_is_missing_from_the_counts():
    recorder = Recorder(capacity=10)
    facts = [lowered(name) for name in "abcd"]

    def call(fact):
        for _ in range(5_000):
            record_call(recorder, fact, 1, 0, 1)

    in_threads(call, facts * 2)
    recording = recorder.freeze()
    assert {name: row.calls for name, row in summaries(recording).items()} == dict.fromkeys(
        "abcd", 10_000
    )
    assert len(recording) + recording.overflow == 40_000


@pytest.mark.parametrize("suffix", [".json", ".jaxcb"])
def test_files_keep_the_counts(suffix, tmp_path):
    a = counted("a", [])
    with jaxcb.record(capacity=2) as r:
        for _ in range(7):
            a(1.0)
    r.recording.save(tmp_path / f"run{suffix}")
    back = jaxcb.load(tmp_path / f"run{suffix}")
    assert back.not_kept == r.recording.not_kept != ()
    assert summaries(back)["a"].calls == 7


def test_file_with_counts_for_a_missing_site_is_reported():
    recorder = Recorder(capacity=0)
    record_call(recorder, lowered("a"), 1, 0, 1)
    data = json.loads(recorder.freeze().to_json())
    for place, wrong in ((0, 7), (1, 1)):
        data["not_kept"][0][place] = wrong
        with pytest.raises(jaxcb.RecordingFileError, match="not_kept"):
            Recording.from_json(json.dumps(data))


def test_merged_recording_adds_up_the_counts_of_all_processes():
    parts = []
    for name, error in (("a", "E: 1"), ("b", "E: 2")):
        recorder = Recorder(capacity=0)
        record_call(recorder, lowered(name), 1, 0, 1)
        record_call(recorder, lowered(name), 1, 0, 1, error)
        parts.append(recorder.freeze())
    both = merged(parts)
    assert both.overflow == sum(count.calls for count in both.not_kept) == 4
    found = summaries(both)
    assert {name: (row.calls, row.errors) for name, row in found.items()} == {
        "a": (2, ("E: 1",)),
        "b": (2, ("E: 2",)),
    }


def test_live_view_counts_calls_past_the_end_of_the_log():
    recorder = Recorder(capacity=2)
    mark, progress = recorder.mark(), Progress(0)
    facts = [lowered("a"), lowered("b")]
    for n in range(3):
        for fact in facts:
            record_call(
                recorder, fact, 1, 0, 10, "ValueError: b" if n and fact is facts[1] else None
            )
        recorded = recorder.snapshot(mark, progress.seen)
        progress.add(recorded)
        message = progress.to_message(recorded, 100, ())
        assert message["calls"] == 2 * (n + 1)
        assert message["not_sent"] == 2 * n
        assert [(site["calls"], site["errors"], site["host_ns"]) for site in message["sites"]] == [
            (n + 1, [], 10 * (n + 1)),
            (n + 1, [f"{n} failed"] if n else [], 10 * (n + 1)),
        ]


def test_fixture_for_tests_counts_calls_past_the_end_of_the_log(monkeypatch):
    recorder = Recorder(capacity=0)
    record_call(recorder, lowered("a"), 1, 0, 5)
    counted = HostCalls.__new__(HostCalls)
    monkeypatch.setattr(HostCalls, "recording", recorder.freeze())
    assert "a" in counted
    assert len(counted) == counted["a"].calls == 1
