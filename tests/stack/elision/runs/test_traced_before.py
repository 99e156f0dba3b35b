"""Loop bodies that JAX traced for an earlier program, and uses again in a derivative."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.interface import Reason, Status, summarize

pytestmark = [pytest.mark.kept, pytest.mark.usefixtures("nothing_compiled_before")]


def tick(*_):
    pass


ours = jaxcb.debug(tick)


def jaxs(*args):
    jax.debug.callback(tick, *args)


FLAVORS = pytest.mark.parametrize("call", [ours, jaxs], ids=["ours", "jax"])


def summary_of(f, *args):
    with jaxcb.observe_jax() as recorded:
        jax.block_until_ready(f(*args))
        jax.effects_barrier()
    (summary,) = summarize(recorded.recording)
    return summary, str(recorded.recording)


def loop_of(call, wrap=lambda f: f):
    """Return a loop of four steps, each with a call that needs no value of the step."""

    def body(x, _):
        call()
        return jnp.sin(x), None

    return wrap(lambda x: lax.scan(body, x, length=4)[0])


@FLAVORS
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit, jax.checkpoint], ids=["", "jit", "remat"])
@pytest.mark.parametrize(
    "derive",
    [jax.grad, jax.value_and_grad, lambda f: lambda x: jax.vjp(f, x)[1](x)],
    ids=["grad", "value_and_grad", "vjp"],
)
def test_call_that_a_derivative_may_have_moved_out_of_its_loop_is_unknown(call, wrap, derive):
    """JAX traces the body once, for the first program; then no bind shows the loop around it."""
    f = loop_of(call, wrap)
    before, _ = summary_of(jax.jit(f), 1.0)
    assert (before.calls, before.status, before.causes) == (4, Status.KEPT, ())
    after, text = summary_of(jax.jit(derive(f)), 1.0)
    assert after.calls < 4 or wrap is jax.checkpoint
    assert after.status in (Status.UNKNOWN, Status.HOISTED)
    assert "jax.clear_caches()" in text and after.written is None


@FLAVORS
def test_the_same_call_is_hoisted_if_the_derivative_is_traced_first(call):
    f = loop_of(call)
    first, _ = summary_of(jax.jit(jax.grad(f)), 1.0)
    assert (first.calls, first.status) == (1, Status.HOISTED)
    then, _ = summary_of(jax.jit(f), 1.0)
    assert (then.calls, then.status) == (4, Status.KEPT)


@FLAVORS
def test_loop_that_was_once_in_another_loop_is_no_riddle_alone(call):
    f = loop_of(call)
    outer = jax.jit(lambda x: lax.scan(lambda x, _: (f(x), None), x, length=3)[0])
    assert summary_of(outer, 1.0)[0].calls == 12
    alone, _ = summary_of(jax.jit(f), 1.0)
    assert (alone.calls, alone.status, alone.causes) == (4, Status.KEPT, ())


@FLAVORS
def test_call_with_a_value_of_the_step_stays_in_its_loop_and_is_known(call):
    def body(x, _):
        call(x)
        return jnp.sin(x), None

    f = lambda x: lax.scan(body, x, length=4)[0]  # noqa: E731
    assert summary_of(jax.jit(f), 1.0)[0].calls == 4
    after, _ = summary_of(jax.jit(jax.grad(f)), 1.0)
    assert (after.calls, after.status, after.causes) == (4, Status.KEPT, ())


@FLAVORS
def test_forward_derivative_leaves_the_call_in_its_loop(call):
    f = loop_of(call)
    assert summary_of(jax.jit(f), 1.0)[0].calls == 4
    after, _ = summary_of(jax.jit(lambda x: jax.jvp(f, (x,), (x,))), 1.0)
    assert (after.calls, after.status, after.causes) == (4, Status.KEPT, ())


def check_may_be_hoisted(summary, text):
    assert summary.status is Status.UNKNOWN and summary.written is None
    assert [cause.reason for cause in summary.causes] == [Reason.MAY_BE_HOISTED]
    assert "where a derivative may have moved it" in text


BOTH = {
    "forward first": lambda f: lambda x: f(x) + jax.grad(f)(x),
    "derivative first": lambda f: lambda x: jax.grad(f)(x) + f(x),
    "value twice": lambda f: lambda x: f(x) + jax.value_and_grad(f)(x)[0],
}


@FLAVORS
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["", "jit"])
@pytest.mark.parametrize("both", BOTH.values(), ids=BOTH)
def test_call_in_its_loop_and_moved_out_of_it_in_one_program_is_unknown(call, wrap, both):
    f = loop_of(call, wrap)
    for more in (0, 1):  # also in a second program, which uses the traces of the first
        g = both(f)
        summary, text = summary_of(jax.jit(lambda x, g=g, more=more: g(x) + more), 1.0)
        assert summary.calls == 5  # of 8
        check_may_be_hoisted(summary, text)


@FLAVORS
@pytest.mark.parametrize("jit", [jax.jit, lambda f: f], ids=["jit", "eager"])
@pytest.mark.parametrize("before", [False, True], ids=["new", "traced before"])
def test_call_in_a_checkpointed_loop_body_is_unknown(call, jit, before):
    def body(x, _):
        call()
        return jnp.sin(x), None

    f = lambda x: lax.scan(jax.checkpoint(body), x, length=4)[0]  # noqa: E731
    if before:
        assert summary_of(jax.jit(f), 1.0)[0].calls == 4
    summary, text = summary_of(jit(jax.grad(f)), 1.0)
    assert summary.calls == 5  # of 8
    check_may_be_hoisted(summary, text)


@FLAVORS
@pytest.mark.parametrize(
    "derive",
    [jax.grad, jax.value_and_grad, lambda f: lambda x: jax.vmap(jax.grad(f))(jnp.ones(2) * x)],
    ids=["grad", "value_and_grad", "vmap"],
)
@pytest.mark.parametrize("before", [False, True], ids=["new", "traced before"])
def test_call_that_an_eager_derivative_moved_out_of_its_loop_is_unknown(call, derive, before):
    f = loop_of(call)
    if before:
        assert summary_of(f, 1.0)[0].status is Status.KEPT
    for _ in range(2):
        summary, text = summary_of(derive(f), 1.0)
        assert summary.calls == 1  # of 4
        check_may_be_hoisted(summary, text)


@FLAVORS
def test_eager_call_in_a_loop_of_python_is_known(call):
    f = loop_of(call)
    with jax.disable_jit():
        for run in (f, jax.grad(f)):
            summary, _ = summary_of(run, 1.0)
            assert (summary.calls, summary.status, summary.causes) == (4, Status.KEPT, ())


@FLAVORS
def test_checkpointed_call_in_a_loop_and_outside_of_it_is_known_without_a_derivative(call):
    @jax.checkpoint
    def step(x):
        call()
        return jnp.sin(x)

    f = lambda x: step(lax.scan(lambda x, _: (step(x), None), x, length=4)[0])  # noqa: E731
    summary, _ = summary_of(jax.jit(f), 1.0)
    assert (summary.calls, summary.written, summary.status) == (5, 5, Status.KEPT)


@FLAVORS
def test_written_calls_of_a_jitted_function_in_a_loop_and_outside_of_it_are_not_guessed(call):
    @jax.jit
    def step(x):
        call()
        return jnp.sin(x)

    f = lambda x: step(lax.scan(lambda x, _: (step(x), None), x, length=4)[0])  # noqa: E731
    summary, text = summary_of(jax.jit(jax.grad(f)), 1.0)
    assert (summary.calls, summary.status) == (2, Status.HOISTED)
    assert summary.written is None and "instead of" not in text


@FLAVORS
@pytest.mark.parametrize("wrap", [lambda f: f, jax.checkpoint], ids=["", "remat"])
@pytest.mark.parametrize("derive", [*BOTH.values(), jax.grad], ids=[*BOTH, "alone"])
def test_loop_of_one_step_loses_no_call(call, wrap, derive):
    def body(x, _):
        call()
        return jnp.sin(x), None

    f = lambda x: lax.scan(wrap(body), x, length=1)[0]  # noqa: E731
    summary, _ = summary_of(jax.jit(derive(f)), 1.0)
    assert (summary.status, summary.causes) == (Status.KEPT, ())


@FLAVORS
def test_loop_of_one_step_that_was_traced_before_may_have_lost_one(call):
    """The body's trace may have had another length."""

    def body(x, _):
        call()
        return jnp.sin(x), None

    f = lambda x: lax.scan(body, x, length=1)[0]  # noqa: E731
    assert summary_of(jax.jit(f), 1.0)[0].status is Status.KEPT
    summary, _ = summary_of(jax.jit(jax.grad(f)), 1.0)
    assert (summary.status, summary.calls) == (Status.UNKNOWN, 1)
    assert [cause.reason for cause in summary.causes] == [Reason.MAY_BE_HOISTED]
