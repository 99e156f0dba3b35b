"""JAX traces a function once for several programs: each program has its own status."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import Hosts

X = np.float32(1)
XS = np.ones(3, np.float32)


@pytest.fixture
def hosts():
    jax.clear_caches()
    return Hosts()


def seen(program, *args):
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(program)(*args))
        jax.effects_barrier()
    return [(str(s.status), s.calls, s.written, s.notes) for s in summarize(r.recording)]


def test_the_body_of_a_long_loop_is_not_hoisted_from_a_short_one(hosts):
    step = hosts.io("a")

    def body(i, x):
        return step(x)

    long = seen(lambda x: lax.fori_loop(0, 3, body, x), X)
    short = seen(lambda x: lax.fori_loop(0, 1, body, x), X)
    assert (long, short) == ([("kept", 3, 3, ())], [("kept", 1, 1, ())])
    assert hosts.calls["a"] == 4


def test_a_branch_of_a_loop_is_not_hoisted_where_no_loop_is(hosts):
    a = hosts.io("a")

    def taken(x):
        return a(x)

    def other(x):
        return x

    def choose(x):
        return lax.cond(x > 0, taken, other, x)

    looped = seen(lambda x: lax.scan(lambda x, _: (choose(x), None), x, length=3)[0], X)
    alone = seen(lambda x: choose(x + 1), X)
    assert (looped[0][:2], alone[0][:2]) == (("kept", 3), ("kept", 1))
    assert hosts.calls["a"] == 4


def test_a_checkpointed_function_inside_and_outside_of_a_loop_is_written_as_often_as_called(hosts):
    show = hosts.debug("a")

    @jax.checkpoint
    def model(x):
        show(x)
        return jnp.sin(x)

    def program(x):
        return lax.scan(lambda x, _: (model(x), None), x, length=3)[0] + model(x + 1)

    assert seen(program, X) == [("kept", 4, 4, ())]
    assert hosts.calls["a"] == 4


def test_elements_of_an_earlier_program_are_not_reported_in_a_later_one(hosts):
    a = hosts.pure("a", vmap_method="expand_dims")

    def taken(x):
        return a(X) + x

    def other(x):
        return x

    def choose(p):
        return lax.cond(p > 0, taken, other, p)

    batched = seen(lambda xs, p: jax.vmap(lambda x: x + choose(p))(xs), np.ones(3, np.float32), X)
    alone = seen(choose, X)
    assert "one call" in str(batched) and alone[0][3] == ()


def test_elements_that_share_a_call_of_a_rule_are_reported(hosts):
    a = hosts.pure("a")
    a.defjvp(lambda primals, tangents: (a(*primals), -a(*primals) * tangents[0]))
    reported = seen(jax.jacfwd(lambda xs: a(xs[0]) * xs), np.ones(3, np.float32))
    assert "one call serves 3 batch elements" in str(reported)


def test_what_runs_while_another_program_is_traced_is_not_elided_from_that_one(hosts):
    a, b = hosts.pure("a"), hosts.io("b")

    def program(x):
        with jax.ensure_compile_time_eval():
            first = lax.fori_loop(0, 2, lambda _, x: a(x), jnp.float32(1))
            second = jax.jit(lambda x: b(x))(first)
        return x + second

    with jaxcb.record() as r:
        jax.jit(program)(X).block_until_ready()
    assert r.recording.elisions == ()
    assert [one.calls for one in summarize(r.recording)] == [2, 1]
    assert hosts.calls == {"a": 2, "b": 1}


def test_a_loop_that_a_derivative_takes_apart_is_reported_the_same_when_asked_first(hosts):
    a = hosts.draw("a")

    def loss(x):
        return lax.scan(lambda c, _: (c * a(), None), x, length=3)[0].sum()

    jitted = jax.jit(jax.grad(loss))
    (ahead,) = summarize(jaxcb.explain(jitted)(XS))
    with jaxcb.record() as r:
        jitted(XS).block_until_ready()
    (run,) = summarize(r.recording)
    assert (ahead.status, ahead.written) == (run.status, run.written) == (Status.HOISTED, 3)
    assert hosts.calls["a"] == run.calls == 1


def test_a_failed_trace_holds_no_array_after_the_recording(hosts):
    a = hosts.pure("a")
    held = []

    def model():
        data = np.ones(3, np.float32)
        held.append(weakref.ref(data))

        def program(x):
            a(x)
            raise ValueError("no luck")

        jax.jit(program)(X)

    with jaxcb.record():
        try:
            model()
        except ValueError as error:
            assert str(error) == "no luck"
    gc.collect()
    assert held[0]() is None
