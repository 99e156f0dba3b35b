"""Loop bodies that JAX traced for an earlier program, and uses again in a derivative."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import Status
from jupyter_jaxcb.report import summarize

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
