"""The recording has every call of compiled code that was made while it was on, and no other."""

import contextlib
import gc
import itertools
import time
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled import _log
from jupyter_jaxcb.capabilities.compiled._handler import CAPACITY, END, LAST_ROW, rows
from jupyter_jaxcb.recording import Recording

SCALAR = jax.ShapeDtypeStruct((), np.float32)


@pytest.fixture(scope="module")
def add():
    return jaxcb.io(lambda x: x + 1, result=SCALAR, compile="numba")


@pytest.fixture(scope="module")
def loop(add):
    """Return a program that calls the callback `n` times."""
    return jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda _, x: add(x), jnp.float32(0)))


@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_every_call_of_a_loop_is_a_crossing_of_its_own(loop, count):
    with jaxcb.record() as r:
        assert float(loop(count)) == count
    assert [call.crossing for call in r.recording] == list(range(count))
    assert {(call.element, call.version, call.error) for call in r.recording} <= {(-1, 1, None)}


def test_batch_elements_are_calls_of_one_crossing(add):
    program = jax.jit(jax.vmap(jax.vmap(add)))
    with jaxcb.record() as r:
        for _ in range(3):
            program(np.zeros((2, 4), np.float32)).block_until_ready()
    expected = list(itertools.product(range(3), range(8)))
    assert [(call.crossing, call.element) for call in r.recording] == expected


def test_calls_begin_and_end_within_the_recording_one_after_the_other(loop, add):
    batched = jax.jit(jax.vmap(add))
    loop(1).block_until_ready()
    began = time.perf_counter_ns()
    with jaxcb.record() as r:
        loop(50).block_until_ready()
        batched(np.zeros(50, np.float32)).block_until_ready()
    ended = time.perf_counter_ns()
    times = [time for call in r.recording for time in (call.start_ns, call.end_ns)]
    assert len(times) == 2 * 100
    assert times == sorted(times)
    assert began <= times[0] and times[-1] <= ended


def test_compiled_and_python_calls_share_a_clock(add):
    """The calls alternate, so each Python call ends before the next compiled one begins."""
    host = jaxcb.io(lambda x: x, result=SCALAR)
    program = jax.jit(lambda x: jax.lax.fori_loop(0, 20, lambda _, x: host(add(x)), x))
    with jaxcb.record() as r:
        program(0.0).block_until_ready()
    in_time = sorted(r.recording, key=lambda call: call.start_ns)
    assert len({call.crossing for call in in_time}) == len(in_time) == 40
    assert all(one.lowered != other.lowered for one, other in itertools.pairwise(in_time))


class Machine:
    """Has a counter and a clock, which take 20 ns to read; it stops for a second before a read."""

    def __init__(self, stops_at):
        self._ns, self._reads, self._stops_at = 5_000, 0, stops_at

    def _read(self):
        self._ns += 20 + (self._reads == self._stops_at) * 10**9
        self._reads += 1
        return self._ns

    def cycles(self):
        return 3 * self._read() + 700

    clock = _read

    def runs(self, ns):
        self._ns += ns
        return self._ns


@pytest.mark.parametrize("stops_at", range(30))
def test_times_of_the_counter_are_right_if_the_machine_stops_between_two_clocks(
    stops_at, monkeypatch
):
    machine = Machine(stops_at)
    monkeypatch.setattr(_log, "read_cycles", machine.cycles)
    log = _log.NativeLog()
    log._began = _log._now(machine)
    times = np.array([machine.runs(ns) for ns in (100, 40_000, 7, 2_000_000)])
    found = log.times(3 * times + 700, machine)
    assert np.abs(found - times).max() <= 20


def test_calls_before_and_after_the_recording_are_not_in_it(loop):
    loop(7).block_until_ready()
    with jaxcb.record() as r:
        loop(3).block_until_ready()
    loop(5).block_until_ready()
    assert len(r.recording) == 3
    with jaxcb.record() as again:
        pass
    assert len(again.recording) == 0


def test_inner_recording_has_its_calls_and_the_outer_all(loop):
    with jaxcb.record() as outer:
        loop(2).block_until_ready()
        with jaxcb.record() as inner:
            loop(3).block_until_ready()
        loop(4).block_until_ready()
    assert (len(inner.recording), len(outer.recording)) == (3, 9)


def test_more_calls_than_the_log_has_rows_are_counted(loop):
    count = LAST_ROW + 5_000
    with jaxcb.record() as r:
        assert float(loop(count)) == count
    recording = r.recording
    assert recording.overflow > 0
    assert len(recording) + recording.overflow == count
    (not_kept,) = recording.not_kept
    assert (not_kept.calls, not_kept.crossings) == (recording.overflow, recording.overflow)
    with jaxcb.record() as again:
        loop(3).block_until_ready()
    assert (len(again.recording), again.recording.overflow) == (3, 0)


@pytest.mark.long
def test_calls_are_counted_even_if_their_program_is_gone(add, loop):
    """Also those that found the log full; a second look at them adds nothing."""
    program = jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda _, x: add(x), jnp.float32(0)))
    program(0).block_until_ready()
    count = LAST_ROW + 5_000
    with jaxcb.record() as r:
        program(count).block_until_ready()
        del program
        jax.clear_caches()
        gc.collect()
        loop(3).block_until_ready()
    recording = r.recording
    assert recording.overflow > 0
    assert len(recording) + recording.overflow == count + 3


@pytest.mark.long
@pytest.mark.parametrize("recorded", [False, True])
def test_log_keeps_nothing_of_programs_that_are_gone(recorded):
    log = _log.log

    def programs(count):
        for _ in range(count):
            callback = jaxcb.pure(lambda x: x, result=SCALAR, compile="numba")
            jax.jit(callback)(1.0).block_until_ready()
        del callback
        jax.clear_caches()
        gc.collect()

    programs(1)
    before = set(log._sites)
    with jaxcb.record() if recorded else contextlib.nullcontext():
        programs(3)
    programs(1)
    assert len(set(log._sites) - before) <= 1
    assert log._counted.keys() <= log._sites.keys()


def test_the_log_is_used_again_from_its_start(loop):
    """Four recordings write more rows than it has."""
    count = CAPACITY // 3
    for _ in range(4):
        with jaxcb.record() as r:
            loop(count).block_until_ready()
        assert len(r.recording) + r.recording.overflow == count
        assert not rows[:, END].any()  # else a row that a thread has claimed looks complete


def test_a_recording_with_less_room_counts_whole_crossings(add):
    program = jax.jit(jax.vmap(add))
    with jaxcb.record(10) as r:
        for _ in range(4):
            program(np.zeros(4, np.float32)).block_until_ready()
    recording = r.recording
    assert len(recording) + recording.overflow == 16
    assert len(recording) <= 10
    assert Counter(call.crossing for call in recording) == {0: 4, 1: 4}


def test_calls_of_several_functions_belong_to_their_sites(add):
    other = jaxcb.pure(lambda x: x * 2, result=SCALAR, compile="numba")
    program = jax.jit(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: add(add(x)), other(x)))
    with jaxcb.record() as r:
        program(0.0).block_until_ready()
    recording = r.recording
    flavors = [recording.lowered[call.lowered].site.flavor for call in recording]
    assert Counter(flavors) == {"io": 6, "pure": 1}
    assert len({call.lowered for call in recording}) == 3


def test_text_says_what_is_not_recorded(loop):
    with jaxcb.record() as r:
        loop(3).block_until_ready()
    assert "compiled by numba: only whole crossings are timed" in str(r.recording)


def test_text_of_a_python_callback_does_not_mention_a_compiler():
    with jaxcb.record() as r:
        jax.jit(jaxcb.pure(lambda x: x, result="x"))(1.0).block_until_ready()
    assert "numba" not in str(r.recording)


def test_recording_of_compiled_calls_survives_a_file(loop, tmp_path):
    with jaxcb.record() as r:
        loop(3).block_until_ready()
    r.recording.save(tmp_path / "r.json")
    for same in (jaxcb.load(tmp_path / "r.json"), Recording.from_json(r.recording.to_json())):
        assert len(same) == 3
        assert "compiled by numba" in str(same)


def test_status_of_a_compiled_call_that_xla_removed():
    callback = jaxcb.pure(lambda x: x + 1, result=SCALAR, compile="numba")

    def f(x):
        callback(x)
        return callback(x * 2)

    with jaxcb.record() as r:
        jax.jit(f)(1.0).block_until_ready()
    assert len(r.recording) == 1
    assert "unused" in str(r.recording)


def test_eager_calls_are_recorded_with_their_values(add):
    with jaxcb.record() as r:
        add(1.0)
        jax.vmap(add)(np.zeros(3, np.float32))
    assert [call.element for call in r.recording] == [-1, 0, 1, 2]


def test_crossings_of_empty_batches_are_not_recorded(add):
    with jaxcb.record() as r:
        jax.jit(jax.vmap(add))(np.zeros(0, np.float32)).block_until_ready()
    assert len(r.recording) == 0
