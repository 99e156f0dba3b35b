"""What a `profile` block promises besides its figures: how it begins and ends, and its limits."""

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

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
