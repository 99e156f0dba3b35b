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
ROWS, row = table(X)


def in_scan(f):
    return lambda x: lax.scan(lambda c, _: (f(c), None), x, length=3)[0]


def in_cond(f):
    return lambda x: lax.cond(x[0] > 0, f, lambda y: y, x)


WRAPS = {"an inner jit": jax.jit, "remat": jax.checkpoint, "a scan": in_scan, "a cond": in_cond}
DERIVED = {"": lambda f: f, " under grad": jax.grad, " under value_and_grad": jax.value_and_grad}
for inside in WRAPS:
    for derived in DERIVED:

        @row(f"an unused call in {inside}{derived}", "a unused 0", (0, 0))
        def _(a, wrap=WRAPS[inside], derive=DERIVED[derived]):
            f = wrap(lambda x: (a(lax.stop_gradient(x)), jnp.sin(x))[1])
            return derive(lambda x: f(x).sum())


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


def recorded(program, ahead=False):
    if ahead:
        found = jaxcb.explain(program)(X)
    else:
        with jaxcb.observe_jax() as r:
            jax.block_until_ready(jax.jit(program)(X))
        found = r.recording
    return {row.site.function: row for row in summarize(found)}


def is_quiet(rows):
    return {part.tone for part in headline(list(rows.values()))} <= {"kept", "quiet"}


RULES = [registered_jvp, registered_vjp, jaxs_jvp, jaxs_vjp_with_an_unneeded_residual]
TRANSFORMS = {
    "grad": lambda f: f,
    "grad of jit": jax.jit,
    "grad of map": lambda f: functools.partial(lax.map, f),
    "explain": lambda f: f,
}


@pytest.mark.parametrize("make", RULES, ids=[make.__name__ for make in RULES])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_value_of_a_derivative_rule_that_the_derivative_does_not_need_is_expected(make, transform):
    h = Hosts()
    g = TRANSFORMS[transform](make(h.pure("value"), h.pure("slope")))
    rows = recorded(jax.grad(lambda x: g(x).sum()), ahead=transform == "explain")
    value = rows["value"]
    assert (str(value.status), value.consequence, value.advice) == ("unused", "not_needed", "")
    assert (value.elided, value.written, value.expected) == (0, 0, 0)
    assert value.reason == "this derivative does not need its value"
    assert rows["slope"].consequence == "kept"
    assert is_quiet(rows)


def test_value_of_a_derivative_rule_that_xla_finds_unneeded_is_expected():
    h = Hosts()
    f = registered_jvp(h.pure("value"), h.pure("slope"))
    rows = recorded(lambda x: x + jax.jvp(f, (x,), (x,))[1][:0].sum())
    assert [row.consequence for row in rows.values()] == ["not_needed", "not_needed"]
    assert str(rows["slope"].status) == "optimized_away"


def test_call_in_a_branch_for_another_platform_is_expected():
    a = Hosts().pure("a")
    rows = recorded(lambda x: lax.platform_dependent(x, tpu=a, default=jnp.sin))
    assert (rows["a"].consequence, rows["a"].elided, rows["a"].advice) == ("not_needed", 0, "")
    assert is_quiet(rows)


def derived(use):
    return lambda f: jax.grad(lambda x: use(f(lax.stop_gradient(x)), 3 * x))


@pytest.mark.parametrize("ours", [True, False], ids=["ours", "JAX's own"])
@pytest.mark.parametrize(
    ("make", "consequence"),
    [
        (derived(lambda value, y: (y + value).sum()), "not_needed"),
        (derived(lambda value, y: jax.jit(jnp.add)(y, value).sum()), "not_needed"),
        (derived(lambda value, y: y.sum()), "unused"),
        (lambda f: lambda x: (f(x) + 1, x)[1], "unused"),
    ],
    ids=["used by the value", "used by a jitted value", "not used", "used in vain, no derivative"],
)
def test_unused_value_is_a_problem_unless_only_the_derivative_does_not_need_it(
    ours, make, consequence
):
    call = Hosts().pure("value")
    jaxs = lambda x: jax.pure_callback(lambda y: y, x, x, vmap_method="sequential")  # noqa: E731
    (value,) = recorded(make(call if ours else jaxs)).values()
    assert (value.consequence, value.elided) == (consequence, int(consequence == "unused"))
    assert bool(value.advice) == (consequence == "unused")


def test_unused_call_of_a_function_with_a_rule_is_still_a_problem_outside_of_derivatives():
    h = Hosts()
    f = registered_jvp(h.pure("value"), h.pure("slope"))
    rows = recorded(lambda x: (f(x), x)[1])
    assert (rows["value"].consequence, rows["value"].elided) == ("unused", 1)
    assert ("warning", "⚠ value never called (unused)") in headline(list(rows.values()))
