"""Predicates with an ordered effect, which JAX evaluates once before their loop and again in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.stack.elision._battery import Hosts, check, each, rows_of, table

X = np.float32(2)
TWO = np.int32(2)
ROWS, row = table(X, TWO)


def helper_of(h, jit=jax.jit):
    """Return a function that makes a pure call, `a`, and has an ordered effect, `e`."""
    a, e = h.pure("a"), h.debug("e", ordered=True)
    return jit(lambda x: (e(x), a(x))[1])


def loop(helper, step=0.0):
    """Return a loop of `n` steps with a call of `helper` in its predicate."""

    def f(x, n):
        goes_on = lambda s: (s[0] < n) & (helper(s[1]) < 50)  # noqa: E731
        return lax.while_loop(goes_on, lambda s: (s[0] + 1, s[1] + step), (0, x))[1]

    return f


row("without a jitted function", "a hoisted 2, e kept 3", (4, 4))(
    lambda h: loop(helper_of(h, lambda f: f))
)
row("such a loop without a jitted function", "a unknown 1, e kept 1")(
    lambda h: (lambda x: loop(helper_of(h, lambda f: f))(x, 0), (X,))
)


@row("a loop that XLA removes", "a optimized away 0, e kept 1")
def _(h):
    helper = helper_of(h)
    goes_on = lambda x: (helper(x) < 50) & False  # noqa: E731
    return lambda x: lax.while_loop(goes_on, lambda x: x + 1, x), (X,)


def scan(length):
    return lambda f: lambda x, n: lax.scan(lambda c, _: (f(c, n) + 1, None), x, length=length)[0]


def in_while(f):
    return lambda x, n: lax.while_loop(lambda c: c < 5, lambda c: f(c, n) + 1, x)


def differentiated(f):
    constant = lambda n: lambda x: x * f(lax.stop_gradient(x), n)  # noqa: E731
    return lambda x, n: jax.jvp(constant(n), (x,), (x,))


# For each name: a transformation of a loop of two steps, and how often it runs the loop.
AROUND = {
    "two loops": (lambda f: lambda x, n: f(x, n) + f(x + 1, n), 2),
    "in a scan of length 1": (scan(1), 1),
    "in a scan of length 3": (scan(3), 3),
    "in a while": (
        lambda f: lambda x, n: lax.while_loop(lambda c: c < 5, lambda c: f(c, n) + 1, x),
        3,
    ),
    "in a branch": (lambda f: lambda x, n: lax.cond(x > 0, lambda x: f(x, n), lambda x: x, x), 1),
    "in differentiated code": (differentiated, 1),
}
for name, (around, times) in AROUND.items():
    row(name, f"a unknown {times}, e kept {3 * times}")(
        lambda h, around=around: around(jax.jit(loop(helper_of(h))))
    )
    if "scan" in name:
        row(f"{name}, with changes", f"a kept {3 * times}, e kept {3 * times}")(
            lambda h, around=around: around(loop(helper_of(h), 1.0))
        )

for length, unroll in ((2, 2), (3, 2), (5, 2), (3, 1), (3, 3)):
    name = f"a scan of {length} in the predicate, with {unroll} iterations unrolled"

    @row(name, f"a kept {3 * length}, e kept {3 * length}")
    def _(h, length=length, unroll=unroll):
        helper = helper_of(h)
        add = lambda x: lambda total, y: (total + helper(x + y), None)  # noqa: E731
        xs = jnp.arange(float(length))
        return loop(lambda x: lax.scan(add(x), x, xs, unroll=unroll)[0], 1.0)


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)


def test_predicate_in_a_predicate_has_four_copies_of_its_call():
    """The names of the loops do not tell them apart."""
    h = Hosts()
    helper = helper_of(h)

    def nested(inner, outer):
        return lambda x, n: loop(lambda x: loop(helper, inner)(x, n), outer)(x, n)

    changing = rows_of(nested(0.5, 1.0), X, TWO)["a"]
    assert (str(changing.status), changing.calls, changing.reason) == ("kept", h.calls["e"], "")
    same = rows_of(nested(0.0, 0.0), X, TWO)["a"]
    assert (str(same.status), same.calls) == ("unknown", 1)
    assert "where XLA may have moved it" in same.reason


@pytest.mark.parametrize(("step", "expected"), [(0.0, ("unknown", 1)), (1.0, ("kept", 3))])
def test_observed_callback_of_jax_may_be_the_ordered_effect(step, expected, capfd):
    a = Hosts().pure("a")
    helper = jax.jit(lambda x: (jax.debug.print("{}", x, ordered=True), a(x))[1])
    with jaxcb.observe_jax():
        found = rows_of(loop(helper, step), X, TWO)["a"]
    assert (str(found.status), found.calls) == expected
