"""What a `profile` block promises besides its figures: how it begins and ends, and its limits."""

import dataclasses
import re
import tempfile
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import monitoring

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.profile import _session
from jupyter_jaxcb.recording import PartKind, active

RUNNING = r"cannot profile: JAX's profiler is running already. .*call jax\.profiler\.stop_trace\(\)"


@pytest.fixture(scope="module")
def step():
    """A compiled program with one host call."""
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    step = jax.jit(lambda x: double(x) + 1)
    step(1.0).block_until_ready()
    return step


def is_complete(p, calls):
    """Return whether a recording has so many calls, and a profile whose parts add up."""
    profile = p.profile
    assert p.recording.profile is profile
    assert sum(part.wall_ns for part in profile.parts) == profile.wall_ns > 0
    return len(p.recording) == calls


def assert_profiler_is_free(tmp_path):
    """Assert that JAX's profiler and `profile` can be used."""
    jax.profiler.start_trace(tmp_path)
    jax.profiler.stop_trace()
    with jaxcb.profile() as p:
        pass
    assert is_complete(p, 0)


def test_profile_is_available_after_the_block(step):
    with jaxcb.profile() as p:
        step(1.0)
        with pytest.raises(RuntimeError, match="Read it after the block"):
            _ = p.profile
        assert str(p) == "<recording in progress>"
    assert is_complete(p, 1)
    assert str(p).endswith(str(p.recording)) and "host functions" in str(p)


@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
def test_error_of_the_body_passes_and_what_ran_is_profiled(kind, step, tmp_path):
    error = kind("no luck")
    with pytest.raises(kind) as raised, jaxcb.profile() as p:
        step(1.0).block_until_ready()
        raise error
    assert raised.value is error
    assert is_complete(p, 1)
    assert p.profile.of_kind("host") > 0
    assert_profiler_is_free(tmp_path)


def test_error_of_a_host_function_passes(tmp_path):
    def fail(x):
        raise ValueError("no luck")

    failing = jaxcb.pure(fail, result="x")
    with pytest.raises(jax.errors.JaxRuntimeError, match="no luck"), jaxcb.profile() as p:
        jax.jit(failing)(1.0).block_until_ready()
    assert is_complete(p, 1)
    assert p.recording.errors == ("ValueError: no luck",)
    assert_profiler_is_free(tmp_path)


def test_second_block_inside_of_a_block_is_refused_and_the_first_goes_on(step, tmp_path):
    with jaxcb.profile() as p:
        step(1.0)
        with pytest.raises(RuntimeError, match=RUNNING), jaxcb.profile():
            pytest.fail("the block began")
        step(2.0)
    assert is_complete(p, 2)
    assert [part.times for part in p.profile.parts if part.kind == "crossing"] == [2]
    assert_profiler_is_free(tmp_path)


def test_block_is_refused_while_jax_profiles(step, tmp_path):
    jax.profiler.start_trace(tmp_path)
    try:
        with pytest.raises(RuntimeError, match=RUNNING), jaxcb.profile():
            pytest.fail("the block began")
        assert active() is None
    finally:
        jax.profiler.stop_trace()
    assert list(tmp_path.rglob("*.xplane.pb"))  # the user's trace was written
    assert_profiler_is_free(tmp_path)


def test_recording_around_a_block_and_inside_of_it_have_their_calls(step):
    with jaxcb.record() as around:
        step(1.0)
        with jaxcb.profile() as p:
            step(2.0)
            with jaxcb.record() as inside:
                step(3.0)
    assert is_complete(p, 2)
    assert (len(around.recording), len(inside.recording)) == (3, 1)
    assert around.recording.profile is inside.recording.profile is None


def test_decorated_function_is_profiled_in_each_call(step, tmp_path):
    seen = []

    @jaxcb.profile()
    def run(x):
        seen.append(active())
        with pytest.raises(RuntimeError, match=RUNNING), jaxcb.profile():
            pytest.fail("the profiler did not run")
        return float(step(x))

    assert [run(1.0), run(2.0)] == [3.0, 5.0]
    assert None not in seen and seen[0] is not seen[1]
    assert_profiler_is_free(tmp_path)


def test_thread_other_than_the_main_thread_is_profiled(step):
    """Its Python takes no longer than its CPU time, however much other threads compute."""
    found, used, over = [], [], threading.Event()

    def work():
        start = time.thread_time_ns()
        with jaxcb.profile() as p:
            step(1.0).block_until_ready()
            sum(range(1_000_000))
        used.append(time.thread_time_ns() - start)
        found.append(p)

    def compute():
        while not over.is_set():
            pass

    other = threading.Thread(target=compute)
    thread = threading.Thread(target=work, name="helper")
    other.start(), thread.start()
    thread.join()
    over.set(), other.join()
    (p,) = found
    assert is_complete(p, 1)
    assert [lane.name for lane in p.profile.lanes][:2] == ["wall time", "helper"]
    assert p.profile.of_kind("python") <= used[0]


def test_eager_calls_are_in_the_lane_of_their_thread():
    """The main thread has one lane, for its programs and for what it calls eagerly."""
    double = jaxcb.pure(lambda x: 2 * x, result="x")

    def wait(x):
        end = time.perf_counter_ns() + 20_000_000
        while time.perf_counter_ns() < end:
            pass
        return x

    spin = jaxcb.io(wait, result=lambda x: x)
    with jaxcb.profile() as p:
        jax.jit(double)(1.0).block_until_ready()
        spin(1.0)
        thread = threading.Thread(target=spin, args=[2.0], name="helper")
        thread.start()
        thread.join()
    lanes = {lane.name: lane.spans for lane in p.profile.lanes}
    assert {"main thread", "helper"} <= set(lanes) and "MainThread" not in lanes
    for name in ("main thread", "helper"):
        kinds = {p.profile.parts[part][:2] for part in lanes[name][2::3]}
        assert (PartKind.HOST, "wait") in kinds


def test_nothing_is_left_in_the_temporary_folder(step, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with jaxcb.profile():
        step(1.0)
    with pytest.raises(KeyError), jaxcb.profile():
        raise KeyError
    with jaxcb.profile(), pytest.raises(RuntimeError), jaxcb.profile():
        pass
    assert list(tmp_path.iterdir()) == []


def test_jax_has_one_listener_of_ours_at_most_and_keeps_those_of_others(step):
    def listeners():
        found = monitoring.get_event_duration_listeners()
        ours = [one for one in found if one.__module__.startswith("jupyter_jaxcb")]
        return len(ours), [one for one in found if one not in ours]

    _, others = listeners()
    for _ in range(2):
        with jaxcb.profile():
            assert listeners() == (1, others)
        assert listeners() == (0, others)


def test_with_recording_turned_off_there_is_no_profile(step, monkeypatch, tmp_path):
    monkeypatch.setenv("JUPYTER_JAXCB", "off")
    with jaxcb.profile() as p:
        assert step(1.0) == 3
        jax.profiler.start_trace(tmp_path)  # the profiler does not run
        jax.profiler.stop_trace()
    assert len(p.recording) == 0 and p.recording.profile is None
    with pytest.raises(RuntimeError, match="no profile: JUPYTER_JAXCB=off turned recording off"):
        _ = p.profile
    monkeypatch.delenv("JUPYTER_JAXCB")
    assert_profiler_is_free(tmp_path)


def test_results_and_calls_are_those_without_a_profile():
    seen = []

    def program(key, x):
        noise = jax.random.normal(key, x.shape)
        jaxcb.debug_callback(lambda x: seen.append(float(x)), x[0])
        own = jax.pure_callback(np.sort, x, x + noise)
        return jax.lax.scan(lambda c, y: (c + y, jaxcb.pure_callback(np.sin, y, y)), 0.0, own)

    def run(around):
        del seen[:]
        jax.clear_caches()
        with around:
            results = jax.tree.map(np.asarray, jax.jit(program)(jax.random.key(3), jnp.arange(4.0)))
            jax.effects_barrier()
        return results, list(seen)

    (expected, wanted), (found, calls) = run(jaxcb.record()), run(jaxcb.profile())
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert calls == wanted == [0.0]


class Growth:
    """Stands for the memory of the process, which grows once, when the body says so.

    Attributes:
        was_read: set when the events have been read for the first time.
        began_again: set when the profiler runs for the second time.
    """

    def __init__(self, monkeypatch):
        self._bytes, self._starts = 0, 0
        self._read, self._start = _session.read_events, _session._start
        self.was_read, self.began_again = threading.Event(), threading.Event()
        monkeypatch.setattr(_session, "used_bytes", lambda: self._bytes)
        monkeypatch.setattr(_session, "_GROWTH_BYTES", 1)
        monkeypatch.setattr(_session, "read_events", self._read_events)
        monkeypatch.setattr(_session, "_start", self._start_profiler)

    def grow(self):
        self._bytes = 1

    def _read_events(self, data):
        events = self._read(data)
        self.was_read.set()
        return events

    def _start_profiler(self):
        session = self._start()
        self._starts += 1
        if self._starts == 2:
            self.began_again.set()
        return session


def crossings(profile):
    return sum(part.times for part in profile.parts if part.kind == "crossing")


def test_too_many_events_end_the_profiling(step, monkeypatch):
    """What XLA does after the cut is unknown; host calls are known to the recording."""
    growth = Growth(monkeypatch)
    monkeypatch.setattr(_session, "_MANY_EVENTS", 0)
    with jaxcb.profile() as p:
        step(1.0).block_until_ready()
        growth.grow()
        assert growth.was_read.wait(timeout=60)
        began = time.perf_counter_ns()
        step(2.0).block_until_ready()
        passed = time.perf_counter_ns() - began
    assert is_complete(p, 2)
    assert not growth.began_again.is_set()
    assert crossings(p.profile) == 1
    assert p.profile.of_kind("unknown") + p.profile.of_kind("host") >= passed
    assert p.profile.parts[-1].kind == PartKind.UNKNOWN
    assert "JAX's profiler was off for" in str(p)


def test_few_events_restart_the_profiling(step, monkeypatch):
    """Something else has made the process grow; only the time of reading is unknown."""
    growth = Growth(monkeypatch)
    with jaxcb.profile() as p:
        step(1.0).block_until_ready()
        growth.grow()
        assert growth.began_again.wait(timeout=60)
        for n in range(3):
            step(float(n)).block_until_ready()
    assert is_complete(p, 4)
    assert crossings(p.profile) == 4
    assert 0 < p.profile.of_kind("unknown") < p.profile.wall_ns
    assert [lane.name for lane in p.profile.lanes].count("main thread") == 1


def test_where_the_used_memory_is_not_known_events_are_read_after_some_time(step, monkeypatch):
    growth = Growth(monkeypatch)
    monkeypatch.setattr(_session, "used_bytes", lambda: None)
    with jaxcb.profile() as p:
        step(1.0).block_until_ready()
        assert not growth.was_read.is_set()
        monkeypatch.setattr(_session, "_LONGEST_NS", 0)
        assert growth.began_again.wait(timeout=60)
        monkeypatch.setattr(_session, "_LONGEST_NS", 10**15)
        step(2.0).block_until_ready()
    assert is_complete(p, 2)
    assert crossings(p.profile) == 2


def sentences_if_nothing_else_took_time(p, kind):
    """Return the report, as if the parts of one kind were all: their share does not vary then."""
    parts = tuple(part for part in p.profile.parts if part.kind == kind)
    wall = sum(part.wall_ns for part in parts)
    profile = p.profile._replace(parts=parts, wall_ns=wall, lanes=())
    return str(dataclasses.replace(p.recording, profile=profile))


def test_program_compiled_for_several_shapes_is_named_with_them():
    @jax.jit
    def total(x):
        return jnp.cumsum(x * 2).sum()

    with jaxcb.profile() as p:
        total(np.ones(3, np.float32)).block_until_ready()
        total(np.ones(5, np.float32)).block_until_ready()
    text = sentences_if_nothing_else_took_time(p, "compilation")
    assert "jit_total was compiled 2 times (" in text
    assert "), for (float32[3]), (float32[5]): arguments of one shape" in text
    (part,) = (one for one in p.profile.parts if one[:2] == (PartKind.COMPILATION, "total"))
    assert part.times == 2
    assert [one.program.name for one in p.profile.compilations].count("jit_total") == 2


def test_argument_that_was_weakly_typed_once_is_named():
    @jax.jit
    def total(x):
        return x + 1

    with jaxcb.profile() as p:
        total(total(1.0)).block_until_ready()
        total(np.float32(1)).block_until_ready()
    text = sentences_if_nothing_else_took_time(p, "compilation")
    assert "), because x was weakly typed (as Python numbers are) the first time but" in text


def test_jit_in_a_loop_is_named():
    with jaxcb.profile() as p:
        for factor in (2, 3, 4):
            jax.jit(lambda x, factor=factor: x * factor)(np.float32(1)).block_until_ready()
    text = sentences_if_nothing_else_took_time(p, "compilation")
    assert "compiled 3 times (" in text
    assert "each time for a new function object: define and jit the function once" in text


def test_eager_functions_of_jax_are_not_taken_for_those_of_the_user():
    """To pad their arguments, or to jit each of them, would not help."""
    with jaxcb.profile() as p:
        for size in (3, 4, 5):
            x = jnp.full(size, 0.5)
            jnp.linalg.norm(jnp.sin(x) * x).block_until_ready()
    text = sentences_if_nothing_else_took_time(p, "compilation")
    assert "Single functions of JAX, such as " in text
    assert "jit_sin was compiled" not in text and "padded" not in text


def test_callbacks_on_one_line_are_told_apart_by_their_column():
    same = jaxcb.pure(lambda x: x, result="x")
    step = jax.jit(lambda x: same(x) + same(x + 1))
    step(1.0).block_until_ready()
    with jaxcb.profile() as p:
        step(1.0).block_until_ready()
    of_host = str(p).partition("host functions")[2].partition("crossings")[0]
    rows = [line for line in of_host.splitlines() if line.endswith("1 call")]
    lines = {re.search(r"test_profile\.py:\d+:\d+ ", row)[0] for row in rows}
    assert len(lines) == len(rows) == 2


def test_short_block_has_no_sentence_about_the_cost_of_profiling():
    with jaxcb.profile() as p:
        pass
    assert p.profile.events < 50
    assert "Without the profiler" not in str(p)


def test_kind_that_does_not_exist_is_an_error_that_lists_the_kinds(step):
    with jaxcb.profile() as p:
        step(1.0)
    with pytest.raises(ValueError, match=r"'hosts' is no kind of part\. Try one of host, "):
        p.profile.of_kind("hosts")


@pytest.mark.filterwarnings("ignore:the jax pure callback spin")
@pytest.mark.parametrize("compiled", ["before the block", "in the block"])
@pytest.mark.parametrize("callback", ["ours", "of JAX"])
def test_calls_that_the_log_had_no_room_for_count_as_host_functions(callback, compiled):
    took = []

    def spin(x):
        began = time.perf_counter_ns()
        while time.perf_counter_ns() < began + 100_000:
            pass
        took.append(time.perf_counter_ns() - began)
        return 2 * x

    scalar = jax.ShapeDtypeStruct((), np.float32)
    call = jaxcb.io(spin, result=lambda x: x) if callback == "ours" else jax.pure_callback
    body = call if callback == "ours" else lambda x: call(spin, scalar, x)
    run = jax.jit(lambda x: jax.lax.fori_loop(0, 30, lambda i, x: body(x), x))
    if compiled == "before the block":
        run(1.0).block_until_ready()
        took.clear()
    with jaxcb.profile(capacity=10) as p:
        run(1.0).block_until_ready()
    assert crossings(p.profile) == 30
    (host,) = (part for part in p.profile.parts if part.kind == "host")
    (lost,) = p.recording.not_kept
    rows = p.recording.calls
    assert (host.name, host.times, lost.calls) == ("spin", 30, 20)
    assert host.busy_ns == (rows["end_ns"] - rows["start_ns"]).sum() + lost.host_ns >= sum(took)
    assert "20 host calls did not fit into the log" in str(p)
