"""Each block reports the runs in it, and their elided calls, of whichever block compiled."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize
from tests._threads import in_threads

double = jaxcb.pure(lambda x: 2 * x, result=lambda x: x)
log = jaxcb.io(lambda x: None, result=None)
X = jnp.ones(3)

pytestmark = pytest.mark.usefixtures("nothing_compiled_before")


def elided(x):
    double(x)
    return x + 1


def optimized_away(x):
    return jnp.where(False, double(x), x)


def length_0(x):
    return lax.fori_loop(0, 0, lambda i, x: (log(x), x)[1], x)


def kept(x):
    return double(x) + 1


def effectful(x):
    log(x)
    return x + 1


def deduplicated(x):
    g = jax.jit(lambda x: double(x))
    return g(x) - 2 * g(x)


def hoisted(x):
    return lax.fori_loop(0, 4, lambda i, c: c + double(x), x)


def not_reached(x):
    return lax.cond(x.sum() > 99, double, lambda x: x, x)


# For each program: its status, and the calls of a run, and whether those are known.
PROGRAMS = {
    elided: (Status.UNUSED, 0, True),
    optimized_away: (Status.OPTIMIZED_AWAY, 0, True),
    length_0: (Status.UNUSED, 0, True),
    kept: (Status.KEPT, 1, True),
    effectful: (Status.KEPT, 1, True),
    deduplicated: (Status.DEDUPLICATED, 1, True),
    hoisted: (Status.HOISTED, 1, True),
    not_reached: (Status.NOT_REACHED, 0, False),
}
EVERY = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
SOME = pytest.mark.parametrize(
    "f", [elided, kept, not_reached, effectful], ids=lambda f: f.__name__
)


def recorded(run):
    with jaxcb.record() as recorded:
        jax.block_until_ready(run())
        jax.effects_barrier()
    return recorded.recording


def compiled(f, *args):
    """Compile in a recorded block; return the program and the recording."""
    found = []
    recording = recorded(lambda: found.append(jax.jit(f).lower(*args).compile()))
    return found[0], recording


def facts(recording):
    """Return the status, calls and expected calls of each site."""
    return [(s.status, s.calls, s.expected) for s in summarize(recording)]


def after(f, runs):
    """Return the expected `facts` after a number of runs."""
    status, calls, known = PROGRAMS[f]
    return [(status, runs * calls, runs * calls if known else None)]


def check_runs(f, runs, run):
    recording = recorded(run)
    assert (facts(recording), list(recording.runs.values())) == (after(f, runs), [runs])


def in_new_thread(test):
    """Run a test in a new thread: JAX counts runs differently depending on a thread's state."""

    @functools.wraps(test)
    def run(**given):
        in_threads(lambda _: test(**given), [0])

    return run


@EVERY
@in_new_thread
def test_every_block_reports_its_own_runs_and_the_outer_one_those_of_all(f):
    jitted = jax.jit(f)
    with jaxcb.record() as outer:
        for runs in (1, 1, 2, 0):
            found = facts(recorded(lambda runs=runs: [jitted(X) for _ in range(runs)]))
            assert found == (after(f, runs) if runs else [])
    assert facts(outer.recording) == after(f, 4)


@EVERY
@pytest.mark.parametrize("first", ["recorded", "never recorded"])
@in_new_thread
def test_block_after_an_unrecorded_run_reports_nothing_wrong(f, first):
    """Without a recorder between the blocks, a status may be unknown, but not wrong."""
    jitted = jax.jit(f)
    if first == "recorded":
        recorded(lambda: jitted(X))
    jitted(X)
    status, calls, _ = PROGRAMS[f]
    found = facts(recorded(lambda: jitted(X)))
    assert len(found) == 1 or not (found or calls)
    for one in found:
        assert one[0] in (status, Status.UNKNOWN, *[Status.KEPT] * calls)
        assert one[1] == calls and one[2] in (None, calls)


@EVERY
def test_every_block_reports_the_runs_in_it_of_a_program_compiled_ahead_of_time(f):
    c, recording = compiled(f, X)
    (found,) = facts(recording)
    gone = Status.UNUSED, Status.OPTIMIZED_AWAY
    assert found[:2] == (PROGRAMS[f][0] if PROGRAMS[f][0] in gone else Status.NOT_RUN, 0)
    assert found[2] in (0, None) and list(recording.runs.values()) == [0]
    for runs in (1, 2, 5):
        check_runs(f, runs, lambda runs=runs: [c(X) for _ in range(runs)])
        jax.block_until_ready([c(X), c(X)])
        assert facts(recorded(lambda: jax.jit(lambda x: x - 1)(1.0))) == []


@SOME
@pytest.mark.parametrize("first", ["recorded", "unrecorded", "threads"])
def test_runs_of_several_threads_are_all_counted(f, first):
    c, _ = compiled(f, X)
    if first != "threads":
        recorded(lambda: c(X)) if first == "recorded" else c(X)

    def work(_):
        for _ in range(25):
            c(X).block_until_ready()

    check_runs(f, 100, lambda: in_threads(work, range(4)))


@SOME
def test_program_compiled_in_one_thread_and_run_in_another_is_counted(f):
    made = []
    recorded(lambda: in_threads(lambda _: made.append(jax.jit(f).lower(X).compile()), [0]))
    check_runs(f, 2, lambda: [made[0](X), made[0](X)])


@SOME
def test_run_is_counted_if_jax_has_masked_the_hook_of_a_thread(f):
    """Many JAX functions disable debug_nans temporarily, as inside vmap."""
    c, _ = compiled(f, X)
    check_runs(f, 2, lambda: [c(X), c(X)])
    with jax.debug_nans(False):
        pass
    check_runs(f, 2, lambda: [c(X), c(X)])


def test_runs_are_counted_in_a_new_thread_where_jax_has_masked_its_hook():
    def in_thread(_):
        jitted = jax.jit(kept)
        with jax.debug_nans(False):
            pass
        return [facts(recorded(lambda runs=runs: [jitted(X)] * runs)) for runs in (1, 1)]

    with jaxcb.record():
        assert in_threads(in_thread, [0]) == [[after(kept, 1), after(kept, 1)]]


@SOME
def test_two_programs_of_one_function_are_counted_separately(f):
    a, _ = compiled(f, X)
    b, _ = compiled(f, X.astype(int))
    recording = recorded(lambda: [a(X), b(X.astype(int)), a(X)])
    assert sorted(recording.runs.values()) == [1, 2]
    assert {o.program for o in recording.outcomes} == set(recording.runs)
    assert list(recorded(lambda: b(X.astype(int))).runs.values()) == [1]


@SOME
def test_program_that_was_traced_first_is_counted_too(f):
    c = []
    recorded(lambda: c.append(jax.jit(f).trace(X).lower().compile()))
    check_runs(f, 2, lambda: [c[0](X), c[0](X)])


@SOME
def test_jitted_function_that_was_compiled_ahead_of_time_is_reported_too(f):
    jitted = jax.jit(lambda x: f(x))  # runs of several programs of `f` would be unknown
    recorded(lambda: jitted.lower(X).compile())
    recorded(lambda: jitted(X))
    assert facts(recorded(lambda: jitted(X))) == after(f, 1)


def test_run_is_counted_after_an_earlier_program_was_freed():
    c, _ = compiled(elided, X)
    recorded(lambda: c(X))
    del c
    c, _ = compiled(elided, X + 1)
    check_runs(elided, 1, lambda: c(X))


def test_callbacks_dropped_while_tracing_under_grad_are_reported():
    sin = jaxcb.pure(np.sin, result=lambda x: x)
    sin.defjvp(lambda p, t: (sin(*p), jnp.cos(p[0]) * t[0]))
    for function in (lambda x: elided(lax.stop_gradient(x)) * x, sin):
        c, recording = compiled(jax.grad(function), 1.0)
        for found in (recording, recorded(lambda c=c: c(1.0)), recorded(lambda c=c: c(1.0))):
            assert [o.status for o in found.outcomes] == [Status.UNUSED]
            assert facts(found) == [(Status.UNUSED, 0, 0)]
        assert recorded(lambda: None).outcomes == ()
