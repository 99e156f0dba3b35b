"""Callbacks that were traced and are in no program: dropped by a derivative, or by an error."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.interface import Reason, Status, summarize

pytestmark = [pytest.mark.kept, pytest.mark.usefixtures("nothing_compiled_before")]

STRUCT = jax.ShapeDtypeStruct((), np.float32)


def guard(x):
    return np.asarray(x)


ours = jaxcb.pure(guard, result="x")


def jaxs(x):
    return jax.pure_callback(guard, STRUCT, x)


FLAVORS = pytest.mark.parametrize("call", [ours, jaxs], ids=["ours", "jax"])


def ignoring(call):
    def f(x):
        call(jax.lax.stop_gradient(x))
        return jnp.sin(x)

    return f


def recorded(run):
    with jaxcb.observe_jax() as r:
        jax.block_until_ready(run())
    return r.recording


def check(recording):
    (summary,) = summarize(recording)
    assert (summary.calls, summary.status) == (0, Status.UNKNOWN)
    assert [cause.reason for cause in summary.causes] == [Reason.IN_NO_PROGRAM]
    text = str(recording)
    assert "guard" in text and summary.where in text and "%jax_explain" in text
    assert "traced but is in no program that ran" in text and "⚠" not in text
    closed, *_ = text.splitlines()
    assert f", {summary.where}: traced, but in no program that ran; see %jax_explain" in closed


@FLAVORS
@pytest.mark.parametrize(
    "run",
    [
        lambda f: jax.grad(jax.jit(f))(1.0),
        lambda f: jax.value_and_grad(jax.jit(f))(1.0),
        lambda f: jax.grad(jax.checkpoint(f))(1.0),
        lambda f: jax.grad(lambda x: jax.lax.cond(x > 0, f, jnp.cos, x))(1.0),
        lambda f: jax.grad(lambda x: jax.lax.fori_loop(0, 3, lambda _, x: f(x), x))(1.0),
    ],
    ids=["jit", "value_and_grad", "checkpoint", "cond", "loop"],
)
def test_callback_that_an_eager_derivative_drops_has_a_row(call, run):
    check(recorded(lambda: run(ignoring(call))))


@FLAVORS
def test_it_has_a_row_also_where_another_program_called_it_before(call):
    f = ignoring(call)
    with jaxcb.observe_jax():
        assert summarize(recorded(lambda: jax.jit(f)(1.0)))[0].status is Status.UNUSED
        check(recorded(lambda: jax.grad(jax.jit(ignoring(call)))(1.0)))


@FLAVORS
def test_callback_whose_tracing_failed_has_a_row(call):
    def f(x):
        return call(x) + jnp.ones(2) @ jnp.ones(3)

    with jaxcb.observe_jax() as r, pytest.raises(TypeError, match="contracting"):
        jax.jit(f)(1.0)
    check(r.recording)


@FLAVORS
def test_row_goes_once_a_program_has_the_callback(call):
    f = jax.jit(lambda x: jnp.sin(x) + call(jax.lax.stop_gradient(x)))
    recording = recorded(lambda: (jax.grad(f)(1.0), f(1.0)))
    assert [one.status for one in summarize(recording)] == [Status.KEPT]


@FLAVORS
@pytest.mark.parametrize(
    "look",
    [
        lambda f: (jax.make_jaxpr(f)(1.0), None)[1],
        lambda f: (jax.eval_shape(jax.grad(jax.jit(f)), 1.0), None)[1],
        lambda f: (jax.jit(f).trace(1.0), None)[1],
        lambda f: (jax.jit(f).lower(1.0), None)[1],
        lambda f: (jax.closure_convert(f, 1.0), None)[1],
    ],
    ids=["make_jaxpr", "eval_shape", "trace", "lower", "closure_convert"],
)
def test_function_that_is_only_looked_at_leaves_no_row(call, look):
    assert summarize(recorded(lambda: look(ignoring(call)))) == []


def test_value_that_a_rule_replaces_leaves_no_row():
    sine = jaxcb.pure(np.sin, result="x")
    sine.defjvp(lambda primals, tangents: (sine(*primals), jnp.cos(primals[0]) * tangents[0]))
    recording = recorded(lambda: jax.value_and_grad(jax.jit(lambda x: sine(x)))(1.0))
    assert [one.status for one in summarize(recording)] == [Status.KEPT]


def guard_and_slope(x):
    return np.asarray(x), np.ones_like(x)


def with_jvp(function):
    function.defjvp(lambda primals, tangents: (jnp.sin(*primals), tangents[0]))
    return function


def with_vjp(function):
    function.defvjp(lambda x: (jnp.sin(x), None), lambda _, cotangent: (cotangent,))
    return function


RULES = {
    "defjvp": with_jvp(jaxcb.pure(guard, result="x")),
    "defvjp": with_vjp(jaxcb.pure(guard, result="x")),
    "finite": jaxcb.pure(guard, result="x", derivative="finite"),
    "gradient": jaxcb.pure(guard_and_slope, result="x", gradient="x"),
    "custom_jvp": with_jvp(jax.custom_jvp(lambda x: ours(x))),
    "custom_vjp": with_vjp(jax.custom_vjp(lambda x: ours(x))),
}
OF_ALL_RULES = pytest.mark.parametrize("call", RULES.values(), ids=RULES)


def failing(call):
    return jax.jit(lambda x: call(x) + jnp.ones(2) @ jnp.ones(3))


@OF_ALL_RULES
def test_callback_with_a_rule_whose_tracing_failed_has_a_row(call):
    with jaxcb.record() as r, pytest.raises(TypeError, match="contracting"):
        failing(call)(1.0)
    check(r.recording)


@OF_ALL_RULES
@pytest.mark.parametrize("around", [jax.lax.stop_gradient, lambda x: x], ids=["stopped", "plain"])
def test_nothing_is_said_of_a_callback_with_a_rule_that_an_eager_derivative_drops(call, around):
    """It looks like one that its rule replaces."""

    def f(x):
        call(around(x))
        return jnp.sin(x)

    recording = recorded(lambda: jax.grad(jax.jit(f))(1.0))
    assert "in no program" not in str(recording) and "⚠" not in str(recording)
    assert {summary.calls for summary in summarize(recording)} <= {0}


@OF_ALL_RULES
@pytest.mark.parametrize(
    "run",
    [
        lambda f: jax.grad(jax.jit(f))(1.0),
        lambda f: jax.jit(jax.grad(f))(1.0),
        lambda f: jax.vmap(jax.grad(jax.jit(f)))(jnp.arange(2.0)),
        lambda f: jax.grad(jax.checkpoint(f))(1.0),
        lambda f: jax.vjp(jax.jit(f), 1.0)[0],
        lambda f: jax.linearize(jax.jit(f), 1.0)[0],
    ],
    ids=["jit", "in jit", "vmap", "checkpoint", "vjp", "linearize"],
)
def test_callback_that_its_rule_replaces_is_not_said_to_be_lost(call, run):
    recording = recorded(lambda: run(lambda x: 2 * call(x)))
    assert "in no program" not in str(recording)


def test_row_survives_a_file(tmp_path):
    recording = recorded(lambda: jax.grad(jax.jit(ignoring(ours)))(1.0))
    for name in ("run.jaxcb", "run.json"):
        recording.save(tmp_path / name)
        check(jaxcb.load(tmp_path / name))
