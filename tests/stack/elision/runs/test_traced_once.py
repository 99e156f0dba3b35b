"""If JAX traces a function once for several programs, each program has its own status."""

import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import summarize
from tests.stack.elision._battery import Hosts, rows_of

X = np.float32(1)
XS = np.ones(3, np.float32)


@pytest.fixture
def hosts():
    jax.clear_caches()
    return Hosts()


def status(program, *args):
    (row,) = rows_of(program, *args).values()
    return str(row.status), row.calls, row.written, row.notes


def test_body_shared_with_a_longer_loop_is_not_reported_as_hoisted(hosts):
    step = hosts.io("a")

    def body(i, x):
        return step(x)

    for length in (3, 1):
        loop = lambda x, length=length: lax.fori_loop(0, length, body, x)  # noqa: E731
        assert status(loop, X) == ("kept", length, length, ())
    assert hosts.calls["a"] == 4


def test_branch_shared_with_a_loop_is_not_reported_as_hoisted_elsewhere(hosts):
    a = hosts.io("a")

    def taken(x):
        return a(x)

    def other(x):
        return x

    choose = lambda x: lax.cond(x > 0, taken, other, x)  # noqa: E731
    looped = lambda x: lax.scan(lambda x, _: (choose(x), None), x, length=3)[0]  # noqa: E731
    assert status(looped, X)[:2] == ("kept", 3)
    assert status(lambda x: choose(x + 1), X)[:2] == ("kept", 1)
    assert hosts.calls["a"] == 4


def test_written_calls_of_a_checkpointed_function_inside_and_outside_of_a_loop_are_exact(hosts):
    show = hosts.debug("a")

    @jax.checkpoint
    def model(x):
        show(x)
        return jnp.sin(x)

    def program(x):
        return lax.scan(lambda x, _: (model(x), None), x, length=3)[0] + model(x + 1)

    assert status(program, X) == ("kept", 4, 4, ())
    assert hosts.calls["a"] == 4


def test_note_about_batch_elements_does_not_appear_in_a_later_program(hosts):
    a = hosts.pure("a", vmap_method="expand_dims")

    def taken(x):
        return a(X) + x

    def other(x):
        return x

    def choose(x):
        return lax.cond(x > 0, taken, other, x)

    batched = status(lambda xs, p: jax.vmap(lambda x: x + choose(p))(xs), XS, X)
    assert "one call" in str(batched)
    assert status(choose, X)[3] == ()


def test_note_says_that_a_call_of_a_rule_serves_several_batch_elements(hosts):
    a = hosts.pure("a")
    a.defjvp(lambda primals, tangents: (a(*primals), -a(*primals) * tangents[0]))
    with jaxcb.record() as r:
        jax.jit(jax.jacfwd(lambda xs: a(xs[0]) * xs))(XS).block_until_ready()
    notes = [note for row in summarize(r.recording) for note in row.notes]
    assert "one call serves 3 batch elements" in str(notes)


def test_calls_made_while_a_program_is_traced_are_not_elided_from_it(hosts):
    a, b = hosts.pure("a"), hosts.io("b")

    def program(x):
        with jax.ensure_compile_time_eval():
            first = lax.fori_loop(0, 2, lambda _, x: a(x), jnp.float32(1))
            return x + jax.jit(lambda x: b(x))(first)

    rows = rows_of(program, X)
    assert {name: (row.calls, row.elided) for name, row in rows.items()} == {
        "a": (2, 0),
        "b": (1, 0),
    }
    assert hosts.calls == {"a": 2, "b": 1}


def test_explain_before_the_first_trace_reports_a_differentiated_loop_like_a_recording(hosts):
    a = hosts.draw("a")
    loop = lambda x: lax.scan(lambda c, _: (c * a(), None), x, length=3)[0].sum()  # noqa: E731
    jitted = jax.jit(jax.grad(loop))
    (ahead,) = summarize(jaxcb.explain(jitted)(XS))
    assert (str(ahead.status), ahead.written) == ("hoisted", 3)
    assert status(jitted, XS)[:3] == ("hoisted", 1, 3)
    assert hosts.calls["a"] == 1


def test_failed_trace_keeps_no_array_alive_after_the_recording(hosts):
    a = hosts.pure("a")
    held = []

    def model():
        data = np.ones(3, np.float32)
        held.append(weakref.ref(data))

        def program(x):
            a(x)
            raise ValueError(data[0])

        jax.jit(program)(X)

    with jaxcb.record():
        try:
            model()
        except ValueError:
            pass
    gc.collect()
    assert held[0]() is None
