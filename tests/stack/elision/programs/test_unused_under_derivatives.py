"""An unused call inside a function that JAX traces separately, with and without a derivative."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.report import headline, summarize
from tests.stack.elision._battery import Hosts, check, each, table

X = np.arange(1, 4, dtype=np.float32)
ROWS, row = table()


def inside(wrap, derive):
    """Return a program with an unused call inside `wrap`, differentiated by `derive`."""

    def program(h):
        a = h.pure("a")
        f = wrap(lambda x: (a(lax.stop_gradient(x)), jnp.sin(x))[1])
        return jax.jit(derive(lambda x: f(x).sum())), (X,)

    return program


def in_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0]


def in_cond(f):
    return lambda x: lax.cond(x[0] > 0, f, lambda y: y, x)


WRAPS = {"an inner jit": jax.jit, "remat": jax.checkpoint, "a scan": in_scan, "a cond": in_cond}
for wrap in WRAPS:
    unused = {"a": "unused 0"}
    row(f"an unused call in {wrap}", unused, (0, 0))(inside(WRAPS[wrap], lambda f: f))
    row(f"an unused call in {wrap} under grad", unused, (0, 0))(inside(WRAPS[wrap], jax.grad))
    row(f"an unused call in {wrap} under value_and_grad", unused, (0, 0))(
        inside(WRAPS[wrap], jax.value_and_grad)
    )


@row("an unused call with a derivative rule in a predicate", {"a": "unused 0"}, (0, 0))
def _(h):
    a = h.pure("a")
    a.defjvp(lambda primals, tangents: (a(*primals), tangents[0]))

    def program(x):
        def go(y):
            return lax.map(lambda z: (a(y), z)[1], x).sum() < 50

        return lax.while_loop(lambda s: (s[0] < 4) & go(s[1]), lambda s: (s[0] + 1, s[1]), (0, x))[
            1
        ]

    return program, (X,)


@row("a call with a derivative rule of which only the shape is used", {}, (0, 0))
def _(h):
    a = h.pure("a")
    a.defjvp(lambda primals, tangents: (a(*primals), tangents[0]))
    return lambda x: x * len(jax.eval_shape(a, x).shape), (X,)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def registered_jvp(value, slope):
    value.defjvp(lambda primals, tangents: (value(*primals), slope(*primals) * tangents[0]))
    return value


def registered_vjp(value, slope):
    value.defvjp(lambda x: (value(x), slope(x)), lambda kept, cotangent: (kept * cotangent,))
    return value


def jaxs_jvp(value, slope):
    f = jax.custom_jvp(lambda x: value(x))
    f.defjvp(lambda primals, tangents: (value(*primals), slope(*primals) * tangents[0]))
    return f


def jaxs_vjp_with_an_unneeded_residual(value, slope):
    f = jax.custom_vjp(lambda x: x * x)
    f.defvjp(
        lambda x: (x * x, (value(x), x)), lambda kept, cotangent: (slope(kept[1]) * cotangent,)
    )
    return f


RULES = [registered_jvp, registered_vjp, jaxs_jvp, jaxs_vjp_with_an_unneeded_residual]


@pytest.mark.parametrize("make", RULES, ids=[make.__name__ for make in RULES])
@pytest.mark.parametrize("transform", ["grad", "grad of jit", "grad of map", "explain"])
def test_value_of_a_derivative_rule_that_the_derivative_does_not_need_is_expected(make, transform):
    h = Hosts()
    f = make(h.pure("value"), h.pure("slope"))
    wraps = {"grad of jit": jax.jit, "grad of map": lambda f: functools.partial(lax.map, f)}
    g = wraps.get(transform, lambda f: f)(f)
    program = jax.jit(jax.grad(lambda x: g(x).sum()))
    rows = recorded(program, ahead=transform == "explain")
    value, slope = rows["value"], rows["slope"]
    assert (str(value.status), value.consequence, value.advice) == ("unused", "not_needed", "")
    assert (value.elided, value.written, value.expected) == (0, 0, 0)
    assert value.reason == "this derivative does not need its value"
    assert slope.consequence == "kept"
    assert {part.tone for part in headline(list(rows.values()))} <= {"kept", "quiet"}


def test_value_of_a_derivative_rule_that_xla_finds_unneeded_is_expected():
    h = Hosts()
    f = registered_jvp(h.pure("value"), h.pure("slope"))
    rows = recorded(jax.jit(lambda x: x + jax.jvp(f, (x,), (x,))[1][:0].sum()))
    assert rows["value"].consequence == "not_needed"
    assert (str(rows["slope"].status), rows["slope"].consequence) == (
        "optimized_away",
        "not_needed",
    )


CALLS = {
    "ours": lambda f: f,
    "JAX's own": lambda f: lambda x: jax.pure_callback(lambda y: y, x, x, vmap_method="sequential"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["grad", "grad of jit"])
def test_value_that_a_derivative_does_not_need_is_expected_without_a_rule(wrap, call):
    f = call(Hosts().pure("value"))
    program = jax.jit(jax.grad(wrap(lambda x: (3 * x + f(lax.stop_gradient(x))).sum())))
    (value,) = recorded(program).values()
    assert (value.consequence, value.elided, value.advice) == ("not_needed", 0, "")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_value_that_differentiated_code_does_not_use_is_still_a_problem(call):
    f = call(Hosts().pure("value"))
    program = jax.jit(jax.grad(lambda x: (f(lax.stop_gradient(x)), (3 * x).sum())[1]))
    (value,) = recorded(program).values()
    assert (value.consequence, value.elided) == ("unused", 1)
    assert value.advice.startswith("return or use the result")


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_value_used_in_vain_outside_of_derivatives_is_still_a_problem(call):
    f = call(Hosts().pure("value"))
    (value,) = recorded(jax.jit(lambda x: (f(x) + 1, x)[1])).values()
    assert value.consequence == "unused"


def test_call_in_a_branch_for_another_platform_is_expected():
    a = Hosts().pure("a")
    rows = recorded(jax.jit(lambda x: lax.platform_dependent(x, tpu=a, default=jnp.sin)))
    assert (rows["a"].consequence, rows["a"].elided, rows["a"].advice) == ("not_needed", 0, "")
    assert {part.tone for part in headline(list(rows.values()))} <= {"kept", "quiet"}


def test_unused_call_of_a_function_with_a_rule_is_still_a_problem_outside_of_derivatives():
    h = Hosts()
    f = registered_jvp(h.pure("value"), h.pure("slope"))
    rows = recorded(jax.jit(lambda x: (f(x), x)[1]))
    assert (rows["value"].consequence, rows["value"].elided) == ("unused", 1)
    assert ("warning", "⚠ value never called (unused)") in headline(list(rows.values()))


def recorded(program, ahead=False):
    if ahead:
        found = jaxcb.explain(program)(X)
    else:
        with jaxcb.observe_jax() as r:
            jax.block_until_ready(program(X))
        found = r.recording
    return {row.site.function: row for row in summarize(found)}
