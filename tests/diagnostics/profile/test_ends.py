"""A `profile` block begins and ends well, and keeps what it has, whatever happens meanwhile."""

import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.observe import _observe
from jupyter_jaxcb.diagnostics.profile import _profile, _session
from jupyter_jaxcb.recording import active

RUNNING = r"cannot profile: JAX's profiler is running already. .*call jax\.profiler\.stop_trace\(\)"


@pytest.fixture(scope="module")
def step():
    """A compiled program with one host call."""
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    step = jax.jit(lambda x: double(x) + 1)
    step(1.0).block_until_ready()
    return step


@pytest.fixture(autouse=True)
def _nothing_is_left(tmp_path):
    yield
    assert active() is None and not _observe._users
    assert "jaxcb profile" not in [thread.name for thread in threading.enumerate()]
    jax.profiler.start_trace(tmp_path)
    jax.profiler.stop_trace()


def assert_complete(p, calls, crossings):
    """Assert that the parts add up, and how many calls and crossings the profile has."""
    parts = p.profile.parts
    assert p.recording.profile is p.profile
    assert sum(part.wall_ns for part in parts) == p.profile.wall_ns > 0
    times = sum(part.times for part in parts if part.kind == "crossing")
    assert (len(p.recording), times) == (calls, crossings)


@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt])
def test_error_of_the_body_passes_and_what_ran_is_profiled(kind, step):
    error = kind("no luck")
    with pytest.raises(kind) as raised, jaxcb.profile() as p:
        step(1.0).block_until_ready()
        raise error
    assert raised.value is error
    assert_complete(p, 1, 1)


def test_empty_block_has_a_profile():
    with jaxcb.profile() as p:
        pass
    assert_complete(p, 0, 0)


def test_profiler_that_runs_already_is_refused_and_goes_on(step, tmp_path):
    def refused():
        with pytest.raises(RuntimeError, match=RUNNING), jaxcb.profile():
            pytest.fail("the block began")

    with jaxcb.profile() as p:
        step(1.0)
        refused()
        step(2.0)
    assert_complete(p, 2, 2)
    jax.profiler.start_trace(tmp_path)
    refused()
    assert active() is None
    jax.profiler.stop_trace()
    assert list(tmp_path.rglob("*.xplane.pb"))  # the user's trace was written


def test_decorated_function_is_profiled_in_each_call(step):
    seen = []

    @jaxcb.profile()
    def run(x):
        seen.append(active())
        return float(step(x))

    assert [run(1.0), run(2.0)] == [3.0, 5.0]
    assert None not in seen and seen[0] is not seen[1]


def test_thread_other_than_the_main_thread_is_profiled(step):
    """Its Python takes no longer than its CPU time, however much other threads compute."""
    found, over = [], threading.Event()

    def work():
        start = time.thread_time_ns()
        with jaxcb.profile() as p:
            step(1.0).block_until_ready()
            sum(range(1_000_000))
        found.extend([p, time.thread_time_ns() - start])

    def compute():
        while not over.is_set():
            pass

    other, thread = threading.Thread(target=compute), threading.Thread(target=work, name="helper")
    other.start(), thread.start()
    thread.join()
    over.set(), other.join()
    p, used = found
    assert_complete(p, 1, 1)
    assert [lane.name for lane in p.profile.lanes][:2] == ["wall time", "helper"]
    assert p.profile.of_kind("python") <= used


def test_block_may_end_in_another_thread(step):
    """As that of a generator does, if the thread which began it has ended."""
    block, entered = jaxcb.profile(), []
    thread = threading.Thread(target=lambda: (entered.append(block.__enter__()), step(1.0)))
    thread.start()
    thread.join()
    step(2.0).block_until_ready()
    block.__exit__(None, None, None)
    assert_complete(entered[0], 2, 2)


def test_with_recording_turned_off_there_is_no_profile(step, monkeypatch, tmp_path):
    monkeypatch.setenv("JUPYTER_JAXCB", "off")
    with jaxcb.profile() as p:
        assert step(1.0) == 3
        jax.profiler.start_trace(tmp_path)  # the profiler does not run
        jax.profiler.stop_trace()
    assert len(p.recording) == 0 and p.recording.profile is None
    with pytest.raises(RuntimeError, match="no profile: JUPYTER_JAXCB=off turned recording off"):
        _ = p.profile


def test_results_and_calls_are_those_without_a_profile():
    seen = []

    def program(x):
        jaxcb.debug_callback(lambda x: seen.append(float(x)), x[0])
        own = jax.pure_callback(np.sort, x, -x)
        return jax.lax.scan(lambda c, y: (c + y, jaxcb.pure_callback(np.sin, y, y)), 0.0, own)

    def run(around):
        jax.clear_caches()
        with around:
            return jax.tree.map(np.asarray, jax.jit(program)(jnp.arange(4.0)))

    jax.tree.map(np.testing.assert_array_equal, run(jaxcb.profile()), run(jaxcb.record()))
    assert seen == [0.0, 0.0]


class InterruptedOnce(threading.Event):
    """An event of which the first wait ends as by Ctrl-C."""

    def __init__(self):
        super().__init__()
        self.waits = threading.Semaphore(0)
        self._interrupted = False

    def wait(self, timeout=None):
        self.waits.release()
        if not self._interrupted:
            self._interrupted = True
            raise KeyboardInterrupt
        return super().wait(timeout)


def test_ctrl_c_while_the_events_are_read_loses_nothing(step, monkeypatch):
    """The interrupt ends the wait for the reading; the block then waits again."""
    read, ended = _session.read_events, InterruptedOnce()

    def reading(data):
        for _ in range(2):
            assert ended.waits.acquire(timeout=60)
        return read(data)

    monkeypatch.setattr(_session, "read_events", reading)
    with pytest.raises(KeyboardInterrupt):
        block = jaxcb.profile()
        with block as p:
            block._sampler._ended = ended
            step(1.0).block_until_ready()
    assert_complete(p, 1, 1)


@pytest.mark.parametrize(("module", "name"), [(_session, "read_events"), (_profile, "build")])
def test_error_at_the_end_is_raised_and_the_recording_is_kept(module, name, step, monkeypatch):
    def fail(data):
        raise ValueError("unreadable")

    monkeypatch.setattr(module, name, fail)
    with pytest.raises(ValueError, match="unreadable"), jaxcb.profile() as p:
        step(1.0).block_until_ready()
    assert len(p.recording) == 1 and p.recording.profile is None
    with pytest.raises(RuntimeError, match="no profile: its block ended with an error or was"):
        _ = p.profile


def unknown_and_host(p):
    return p.profile.of_kind("unknown") + p.profile.of_kind("host")


def test_profiler_that_the_body_stops_has_what_came_before(step, tmp_path):
    """And a profiler that the body starts then is its own."""
    with jaxcb.profile() as p:
        step(1.0).block_until_ready()
        jax.profiler.stop_trace()
        began = time.perf_counter_ns()
        step(2.0).block_until_ready()
        passed = time.perf_counter_ns() - began
        jax.profiler.start_trace(tmp_path)
    jax.profiler.stop_trace()
    assert list(tmp_path.rglob("*.xplane.pb"))
    assert_complete(p, 2, 1)
    assert passed <= unknown_and_host(p) < p.profile.wall_ns
    assert "the program stopped it with jax.profiler.stop_trace()." in str(p)


@pytest.mark.parametrize(("many", "crossings"), [(0, 1), (10**9, 2)])
def test_events_are_read_when_memory_has_grown_and_many_end_the_profiling(
    many, crossings, step, monkeypatch
):
    """What XLA does after the cut is unknown; host calls are known to the recording."""
    used = [0]
    monkeypatch.setattr(_session, "used_bytes", lambda: used[0])
    monkeypatch.setattr(_session, "_GROWTH_BYTES", 1)
    monkeypatch.setattr(_session, "_MANY_EVENTS", many)
    block = jaxcb.profile()
    with block as p:
        step(1.0).block_until_ready()
        used[0] = 1
        while not block._sampler.tracing.gaps:
            pass
        began = time.perf_counter_ns()
        step(2.0).block_until_ready()
        passed = time.perf_counter_ns() - began
    assert_complete(p, 2, crossings)
    assert many or unknown_and_host(p) >= passed
    why = "there were too many events" if many == 0 else "the memory of the process grew"
    assert f"and what XLA did then is not known: {why}" in str(p)


KILLED = """
    import os, signal, sys, tempfile, jax, jupyter_jaxcb as jaxcb

    tempfile.tempdir = sys.argv[1]
    jax.devices()
    with jaxcb.profile():
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_process_that_is_killed_in_a_block_leaves_no_temporary_folder(in_process, tmp_path):
    in_process(KILLED, tmp_path, status=-signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []
