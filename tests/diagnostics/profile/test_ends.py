"""A `profile` block ends well, and keeps what it has, whatever happens meanwhile."""

import signal
import threading
import time

import jax
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.diagnostics.observe import _observe
from jupyter_jaxcb.diagnostics.profile import _profile, _session
from jupyter_jaxcb.recording import active


@pytest.fixture(scope="module")
def step():
    """A compiled program with one host call."""
    double = jaxcb.pure(lambda x: 2 * x, result="x")
    step = jax.jit(lambda x: double(x) + 1)
    step(1.0).block_until_ready()
    return step


def assert_nothing_is_left(tmp_path):
    assert active() is None and not _observe._users
    assert "jaxcb profile" not in [thread.name for thread in threading.enumerate()]
    jax.profiler.start_trace(tmp_path)
    jax.profiler.stop_trace()


def crossings(p):
    return sum(part.times for part in p.profile.parts if part.kind == "crossing")


def is_complete(p):
    return sum(part.wall_ns for part in p.profile.parts) == p.profile.wall_ns


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


def test_ctrl_c_while_the_events_are_read_loses_nothing(step, monkeypatch, tmp_path):
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
    assert len(p.recording) == 1 and crossings(p) == 1 and is_complete(p)
    assert_nothing_is_left(tmp_path)


@pytest.mark.parametrize("step_of_end", ["read_events", "build"])
def test_error_at_the_end_is_raised_and_the_recording_is_kept(
    step_of_end, step, monkeypatch, tmp_path
):
    def fail(data):
        raise ValueError("unreadable")

    monkeypatch.setattr(_session if step_of_end == "read_events" else _profile, step_of_end, fail)
    with pytest.raises(ValueError, match="unreadable"), jaxcb.profile() as p:
        step(1.0).block_until_ready()
    assert len(p.recording) == 1 and p.recording.profile is None
    with pytest.raises(RuntimeError, match="no profile: its block ended with an error or was"):
        _ = p.profile
    monkeypatch.undo()
    assert_nothing_is_left(tmp_path)


def test_profiler_that_the_body_stops_has_what_came_before(step, tmp_path):
    with jaxcb.profile() as p:
        step(1.0).block_until_ready()
        time.sleep(0.1)
        jax.profiler.stop_trace()
        began = time.perf_counter_ns()
        step(2.0).block_until_ready()
        time.sleep(0.1)
        after = time.perf_counter_ns() - began
    assert len(p.recording) == 2 and crossings(p) == 1 and is_complete(p)
    unknown = p.profile.of_kind("unknown") + p.profile.of_kind("host")
    assert after <= unknown < p.profile.wall_ns
    assert "the program stopped it with jax.profiler.stop_trace()." in str(p)
    assert_nothing_is_left(tmp_path)


def test_block_may_end_in_another_thread(step, tmp_path):
    """As that of a generator does, if the thread which began it has ended."""
    block = jaxcb.profile()
    entered = []

    def begin():
        entered.append(block.__enter__())
        step(1.0).block_until_ready()

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    step(2.0).block_until_ready()
    block.__exit__(None, None, None)
    (p,) = entered
    assert len(p.recording) == 2 and crossings(p) == 2 and is_complete(p)
    assert_nothing_is_left(tmp_path)


KILLED = """
    import os, signal, sys, tempfile
    import jax, jupyter_jaxcb as jaxcb

    tempfile.tempdir = sys.argv[1]
    jax.devices()
    with jaxcb.profile() as p:
        jax.jit(lambda x: x + 1)(1.0).block_until_ready()
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_process_that_is_killed_in_a_block_leaves_no_temporary_folder(in_process, tmp_path):
    in_process(KILLED, tmp_path, status=-signal.SIGKILL)
    assert list(tmp_path.iterdir()) == []
