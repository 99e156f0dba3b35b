"""Calls of which only the times are kept until somebody reads them are recorded like all others."""

import contextlib
import gc
import itertools
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Recorder, YieldPoints, activate
from jupyter_jaxcb.recording.recorder import _log, _plain, _recorder
from jupyter_jaxcb.stack.dispatch import _crossing
from tests._threads import in_threads

CALLS = 40  # of which all but the first are plain


@pytest.fixture
def recorder():
    recorder = Recorder(clock=itertools.count().__next__)
    activate(recorder)
    yield recorder
    activate(None)


def repeated(host, calls=CALLS):
    """Return a program that calls `host` with 0, 1, ..."""
    f = jaxcb.io(host, result=None)
    return jax.jit(lambda: jax.lax.fori_loop(0, calls, lambda i, x: (f(i), x)[1], 0))


def run(program):
    jax.block_until_ready(program())
    jax.effects_barrier()


@pytest.mark.parametrize("inner", [lambda f: f, jax.vmap], ids=["with plain calls", "with batches"])
def test_calls_are_in_the_order_in_which_they_ended(recorder, inner):
    made = []

    def named(name):
        def host(x):
            made.append(name)

        host.__name__ = name
        return jaxcb.io(host, result=None)

    first, second = named("first"), named("second")

    def step(i, x):
        first(i)
        inner(second)(x)
        return x

    run(jax.jit(lambda: jax.lax.fori_loop(0, CALLS, step, jnp.arange(3.0))))
    recording = recorder.freeze()
    names = [recording.lowered[call.lowered].site.function for call in recording]
    assert names == made
    crossings = recording.calls["crossing"]
    assert (np.diff(crossings.astype(int)) >= 0).all()


def test_each_call_of_several_threads_has_one_row(recorder):
    """Each thread makes calls of two sites, so many takes of times are at once."""
    programs = [repeated(lambda i: None) for _ in range(2)]
    for program in programs:
        run(program)

    def many(_):
        for _ in range(20):
            for program in programs:
                jax.block_until_ready(program())

    in_threads(many, range(4))
    jax.effects_barrier()
    calls = recorder.freeze().calls
    assert len(calls) == 2 * CALLS * (1 + 4 * 20)
    assert len(set(calls["crossing"].tolist())) == len(calls)


def test_failed_call_comes_after_the_plain_calls_before_it():
    def host(i):
        if i == CALLS - 1:
            raise ValueError("no luck")

    program = repeated(host)
    with jaxcb.record() as r, pytest.raises(Exception, match="no luck"):
        run(program)
    assert [call.error for call in r.recording] == [*[None] * (CALLS - 1), "ValueError: no luck"]


def test_calls_after_a_reading_are_recorded_once(recorder):
    program = repeated(lambda i: None)
    mark = recorder.mark()
    for runs in range(1, 4):
        run(program)
        assert recorder.touched(mark)
        assert len(recorder.snapshot(mark, 0).calls) == runs * CALLS
    later = recorder.mark()
    assert not recorder.touched(later)
    run(program)
    assert [len(recorder.freeze(since)) for since in (mark, later)] == [4 * CALLS, CALLS]


def test_many_times_are_packed_and_get_rows(recorder, monkeypatch):
    monkeypatch.setattr(_recorder, "RECENT", 2 * 4)
    monkeypatch.setattr(_plain, "RECENT", 2 * 4)
    monkeypatch.setattr(_plain, "PACKED_BYTES", 12 * 16)
    kept, parts = [], recorder._plain._parts

    def host(i):
        kept.extend((len(packed) // 16, len(recent) // 2) for packed, recent in parts.values())

    run(repeated(host))
    assert kept[:16] == [(packed, n) for packed in (0, 4, 8, 0) for n in range(4)]
    calls = recorder.freeze().calls
    assert len(calls) == CALLS
    assert (np.diff(calls["end_ns"]) > 0).all()


def test_plain_calls_pause_for_an_observing_thread(recorder):
    paused = []

    def host(i):
        if i == CALLS - 1:
            turns.end()  # of the turn that the call after this one would wait for
            paused.append(turns.take(0))

    program = repeated(host)
    with YieldPoints(recorder, every_ns=3 * CALLS) as turns:
        run(program)
        assert paused == [False]
        run(program)
    assert paused == [False, True]


@pytest.fixture(params=["collect", "pack"])
def take(request, recorder, monkeypatch):
    """Return a function that moves the times of plain calls elsewhere."""
    monkeypatch.setattr(_plain, "RECENT", CALLS)
    return getattr(recorder._plain, request.param)


def traced(at_line, take):
    """Call `take`, and `at_line` before each of its lines."""

    def trace(frame, event, argument):
        if not frame.f_code.co_filename.endswith(("_plain.py", "_log.py")):
            return None
        if event == "line":
            at_line()
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        take()
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("interrupts", [False, True], ids=["reading", "interrupt"])
def test_what_comes_while_times_are_taken_neither_loses_nor_doubles_a_call(
    recorder, take, interrupts
):
    """A destructor or another thread reads before any line, or an interrupt is raised there."""
    program, calls, read = repeated(lambda i: None), 0, []

    def at_line():
        if next(lines) == 0:
            if interrupts:
                read.append(calls)
                raise KeyboardInterrupt
            sys.settrace(None)
            read.append(len(recorder.freeze()))

    number = 0
    while len(read) == number:
        run(program)
        calls += CALLS
        lines, number = itertools.count(-number), number + 1
        with contextlib.suppress(KeyboardInterrupt):
            traced(at_line, take)
        assert len(recorder.freeze()) == calls
    assert number > 15
    assert read == list(range(CALLS, calls, CALLS))


def test_other_plain_calls_may_begin_while_times_are_looked_for():
    """The garbage collector may run another thread, or a destructor that makes a call."""
    plain = _plain.PlainCalls(_plain.CallLog(10, _log.Counts()), itertools.count())
    threads = itertools.count()

    def begin(phase, info):
        plain.times(0, next(threads), 0)

    begin("", {})
    before = gc.get_threshold()
    gc.callbacks.append(begin)
    gc.set_threshold(1)
    try:
        is_empty = [not plain.any() for _ in range(5)]
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(begin)
    assert all(is_empty) and next(threads) > 5


def test_plain_calls_of_a_thread_are_not_those_of_the_next_one(monkeypatch):
    """The next thread may get the ident of the one that has ended; here, each does."""
    monkeypatch.setattr(_recorder, "get_ident", lambda: 1)
    monkeypatch.setattr(_crossing, "get_ident", lambda: 1)
    program = repeated(lambda i: None)
    with jaxcb.record() as r:
        for name in ("alpha", "beta", "gamma"):
            thread = threading.Thread(target=run, args=(program,), name=name)
            thread.start()
            thread.join()
    names = [r.recording.threads[call.thread] for call in r.recording]
    assert names == [name for name in ("alpha", "beta", "gamma") for _ in range(CALLS)]


def test_sample_values_after_a_mark_are_those_of_the_first_calls(recorder):
    program = repeated(lambda i: None)
    run(program)
    mark = recorder.mark()
    run(program)
    assert [sample.operands for sample in recorder.freeze(mark).sample_values] == [
        ("0",), ("1",), ("2",),
    ]  # fmt: skip
