"""Runs of programs compiled ahead of time are counted, and their elided calls are reported."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize
from tests._threads import in_threads

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
log = jaxcb.io(lambda x: None, result=None)


pytestmark = pytest.mark.usefixtures("nothing_compiled_before")


def elided(x):
    double(x)
    return x + 1


def kept(x):
    return double(x) + 1


def not_reached(x):
    return jax.lax.cond(x > 99, double, lambda x: x, x)


def effectful(x):
    log(x)
    return x + 1


PROGRAMS = [elided, kept, not_reached, effectful]
EVERY = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
STATUSES = {
    elided: Status.UNUSED,
    kept: Status.KEPT,
    not_reached: Status.NOT_REACHED,
    effectful: Status.KEPT,
}


def recorded(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
    return recorded.recording


def compiled(f, *args):
    """Compile in a recorded block; return the program and the recording."""
    found = []
    recording = recorded(lambda: found.append(jax.jit(f).lower(*args).compile()))
    return found[0], recording


def facts(recording):
    """Return the status, calls and expected calls of each site, and the runs of each program."""
    found = [(s.status, s.calls, s.expected) for s in summarize(recording)]
    return found, list(recording.runs.values())


def after(f, runs):
    """Return the expected `facts` after a number of runs."""
    calls = runs * (f in (kept, effectful))
    expected = None if f is not_reached else calls
    return [(STATUSES[f], calls, expected)], [runs]


@EVERY
def test_runs_in_the_block_that_compiled_are_counted(f):
    def run():
        c = jax.jit(f).lower(1.0).compile()
        return [c(1.0), c(2.0), c(3.0)]

    assert facts(recorded(run)) == after(f, 3)


@EVERY
def test_every_later_block_reports_its_own_runs(f):
    c, _ = compiled(f, 1.0)
    for runs in (1, 2, 5):
        assert facts(recorded(lambda runs=runs: [c(1.0) for _ in range(runs)])) == after(f, runs)


@EVERY
def test_block_without_a_run_of_the_program_reports_nothing(f):
    c, _ = compiled(f, 1.0)
    recorded(lambda: c(1.0))
    assert facts(recorded(lambda: jax.jit(lambda x: x - 1)(1.0))) == ([], [])
    c(1.0)
    assert facts(recorded(lambda: None)) == ([], [])


@EVERY
def test_runs_between_blocks_do_not_count(f):
    c, _ = compiled(f, 1.0)
    for _ in range(2):
        jax.block_until_ready([c(1.0) for _ in range(3)])
        assert facts(recorded(lambda: [c(1.0), c(1.0)])) == after(f, 2)


@EVERY
def test_program_that_never_ran_is_reported_as_not_run(f):
    _, recording = compiled(f, 1.0)
    (found,), runs = facts(recording)
    status = Status.UNUSED if f is elided else Status.NOT_RUN
    assert (found[:2], runs) == ((status, 0), [0])
    assert found[2] in (0, None)


@EVERY
@pytest.mark.parametrize("first", ["recorded", "unrecorded", "threads"])
def test_runs_of_several_threads_are_all_counted(f, first):
    c, _ = compiled(f, 1.0)
    if first != "threads":
        recorded(lambda: c(1.0)) if first == "recorded" else c(1.0)

    def work():
        for _ in range(25):
            c(1.0).block_until_ready()

    def run():
        in_threads(lambda _: work(), range(4))

    assert facts(recorded(run)) == after(f, 100)


@EVERY
def test_program_compiled_in_one_thread_and_run_in_another_is_counted(f):
    made = []
    recorded(lambda: start_and_join(lambda: made.append(jax.jit(f).lower(1.0).compile())))
    assert facts(recorded(lambda: [made[0](1.0), made[0](2.0)])) == after(f, 2)


def start_and_join(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@EVERY
def test_run_is_counted_if_jax_has_masked_the_hook_of_a_thread(f):
    c, _ = compiled(f, 1.0)
    recorded(lambda: [c(1.0), c(1.0)])
    with jax.debug_nans(False):  # as JAX does inside vmap
        pass
    assert facts(recorded(lambda: [c(1.0), c(1.0)])) == after(f, 2)


@EVERY
def test_two_programs_of_one_function_are_counted_separately(f):
    a, _ = compiled(f, 1.0)
    b, _ = compiled(f, 1)  # for an integer
    recording = recorded(lambda: [a(1.0), b(1), a(1.0)])
    assert sorted(recording.runs.values()) == [1, 2]
    assert {o.program for o in recording.outcomes} == set(recording.runs)
    assert list(recorded(lambda: b(1)).runs.values()) == [1]


def test_unused_and_kept_calls_of_one_program_have_their_own_status():
    def f(x):
        double(x)
        return double(x + 1)

    c, _ = compiled(f, 1.0)
    for _ in range(2):
        found, runs = facts(recorded(lambda: [c(1.0), c(1.0)]))
        assert (found, runs) == ([(Status.UNUSED, 0, 0), (Status.KEPT, 2, 2)], [2])


def test_expected_calls_include_loop_iterations_and_batch_elements():
    def f(x):
        return jax.lax.fori_loop(0, 3, lambda i, x: jax.vmap(double)(x), x)

    c, recording = compiled(f, jnp.ones(2))
    assert facts(recording) == ([(Status.NOT_RUN, 0, 0)], [0])
    assert facts(recorded(lambda: [c(jnp.ones(2))] * 1)) == ([(Status.KEPT, 6, 6)], [1])


def test_run_is_counted_after_an_earlier_program_was_freed():
    c, _ = compiled(elided, 1.0)
    recorded(lambda: c(1.0))
    del c
    c, _ = compiled(elided, 2.0)
    assert facts(recorded(lambda: c(2.0))) == after(elided, 1)


def test_recorded_program_returns_the_same_results():
    c, _ = compiled(kept, jnp.ones(3))
    for _ in range(3):
        np.testing.assert_array_equal(c(jnp.arange(3.0)), [1, 3, 5])
        with pytest.raises(TypeError):
            c(jnp.ones(4))


def test_callbacks_dropped_while_tracing_under_grad_are_reported():
    def f(x):
        double(jax.lax.stop_gradient(x))
        return x * x

    sin = jaxcb.pure(np.sin, result=lambda x: x)
    sin.defjvp(lambda p, t: (sin(*p), jnp.cos(p[0]) * t[0]))
    for function in (f, lambda x: sin(x)):
        c, recording = compiled(jax.grad(function), 1.0)
        for found in (recording, recorded(lambda c=c: c(1.0)), recorded(lambda c=c: c(1.0))):
            assert [o.status for o in found.outcomes] == [Status.UNUSED]
            assert facts(found)[0] == [(Status.UNUSED, 0, 0)]
        assert recorded(lambda: None).outcomes == ()


def test_call_whose_result_is_used_under_grad_is_kept():
    sin = jaxcb.pure(np.sin, result=lambda x: x)
    sin.defjvp(lambda p, t: (sin(*p), jnp.cos(p[0]) * t[0]))
    c, _ = compiled(jax.value_and_grad(lambda x: sin(x)), 1.0)
    assert facts(recorded(lambda: c(1.0))) == ([(Status.KEPT, 1, 1)], [1])


@pytest.mark.parametrize("f", [elided, kept, not_reached], ids=lambda f: f.__name__)
def test_program_that_was_traced_first_is_counted_too(f):
    c = []
    recorded(lambda: c.append(jax.jit(f).trace(1.0).lower().compile()))
    assert facts(recorded(lambda: [c[0](1.0), c[0](1.0)])) == after(f, 2)


@pytest.mark.parametrize("f", [elided, not_reached], ids=lambda f: f.__name__)
def test_jitted_function_that_was_compiled_ahead_of_time_is_reported_too(f):
    j = jax.jit(f)
    recorded(lambda: j.lower(1.0).compile())
    recorded(lambda: j(1.0))
    assert facts(recorded(lambda: j(1.0))) == after(f, 1)
