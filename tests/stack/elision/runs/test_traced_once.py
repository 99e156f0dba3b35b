"""If JAX traces a function once for several programs, each program has its own status."""

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


def statuses(program, *args):
    with jaxcb.record() as r:
        jax.block_until_ready(jax.jit(program)(*args))
        jax.effects_barrier()
    return [(str(s.status), s.calls, s.written, s.notes) for s in summarize(r.recording)]


def test_body_shared_with_a_longer_loop_is_not_reported_as_hoisted(hosts):
    step = hosts.io("a")

    def body(i, x):
        return step(x)

    long = statuses(lambda x: lax.fori_loop(0, 3, body, x), X)
    short = statuses(lambda x: lax.fori_loop(0, 1, body, x), X)
    assert (long, short) == ([("kept", 3, 3, ())], [("kept", 1, 1, ())])
    assert hosts.calls["a"] == 4


def test_branch_shared_with_a_loop_is_not_reported_as_hoisted_elsewhere(hosts):
    a = hosts.io("a")

    def taken(x):
        return a(x)

    def other(x):
        return x

    def choose(x):
        return lax.cond(x > 0, taken, other, x)

    looped = statuses(lambda x: lax.scan(lambda x, _: (choose(x), None), x, length=3)[0], X)
    alone = statuses(lambda x: choose(x + 1), X)
    assert (looped[0][:2], alone[0][:2]) == (("kept", 3), ("kept", 1))
    assert hosts.calls["a"] == 4


def test_written_calls_of_a_checkpointed_function_inside_and_outside_of_a_loop_are_exact(hosts):
    show = hosts.debug("a")

    @jax.checkpoint
    def model(x):
        show(x)
        return jnp.sin(x)

    def program(x):
        return lax.scan(lambda x, _: (model(x), None), x, length=3)[0] + model(x + 1)

    assert statuses(program, X) == [("kept", 4, 4, ())]
    assert hosts.calls["a"] == 4


def test_note_about_batch_elements_does_not_appear_in_a_later_program(hosts):
    a = hosts.pure("a", vmap_method="expand_dims")

    def taken(x):
        return a(X) + x

    def other(x):
        return x

    def choose(p):
        return lax.cond(p > 0, taken, other, p)

    batched = statuses(
        lambda xs, p: jax.vmap(lambda x: x + choose(p))(xs), np.ones(3, np.float32), X
    )
    alone = statuses(choose, X)
    assert "one call" in str(batched) and alone[0][3] == ()


def test_note_says_that_a_call_of_a_rule_serves_several_batch_elements(hosts):
    a = hosts.pure("a")
    a.defjvp(lambda primals, tangents: (a(*primals), -a(*primals) * tangents[0]))
    reported = statuses(jax.jacfwd(lambda xs: a(xs[0]) * xs), np.ones(3, np.float32))
    assert "one call serves 3 batch elements" in str(reported)


def test_calls_made_while_a_program_is_traced_are_not_elided_from_it(hosts):
    a, b = hosts.pure("a"), hosts.io("b")

    def program(x):
        with jax.ensure_compile_time_eval():
            first = lax.fori_loop(0, 2, lambda _, x: a(x), jnp.float32(1))
            second = jax.jit(lambda x: b(x))(first)
        return x + second

    with jaxcb.record() as r:
        jax.jit(program)(X).block_until_ready()
    assert r.recording.elisions == ()
    assert [row.calls for row in summarize(r.recording)] == [2, 1]
    assert hosts.calls == {"a": 2, "b": 1}


def test_explain_before_the_first_trace_reports_a_differentiated_loop_like_a_recording(hosts):
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


def test_failed_trace_keeps_no_array_alive_after_the_recording(hosts):
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
