"""Predicates with an ordered effect, which JAX evaluates once before their loop and again in it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from tests.stack.elision._battery import Hosts, by_key, check, each, table

X = np.float32(2)
TWO = np.int32(2)
ROWS, row = table()


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


@row("arguments that do not change", {"a": "deduplicated 1", "e": "kept 3"}, (2, 3))
def _(h):
    return loop(helper_of(h)), (X, TWO)


@row("arguments that change", {"a": "kept 3", "e": "kept 3"}, (2, 4))
def _(h):
    return loop(helper_of(h), 1.0), (X, TWO)


@row("a loop that only XLA could know is not entered", {"a": "deduplicated 1", "e": "kept 1"})
def _(h):
    return loop(helper_of(h)), (X, np.int32(0))


@row("without a jitted function", {"a": "hoisted 2", "e": "kept 3"}, (4, 4))
def _(h):
    return loop(helper_of(h, lambda f: f)), (X, TWO)


@row("a loop of one step that XLA keeps", {"a": "deduplicated 1", "e": "kept 2"})
def _(h):
    return lambda x: loop(helper_of(h))(x, 1), (X,)


@row("a loop that no run enters, which XLA keeps", {"a": "kept 1", "e": "kept 1"})
def _(h):
    return lambda x: loop(helper_of(h))(x, 0), (X,)


@row("such a loop without a jitted function", {"a": "kept 1", "e": "kept 1"})
def _(h):
    return lambda x: loop(helper_of(h, lambda f: f))(x, 0), (X,)


@row("a loop that XLA removes", {"a": "optimized away 0", "e": "kept 1"})
def _(h):
    helper = helper_of(h)
    goes_on = lambda x: (helper(x) < 50) & False  # noqa: E731
    return lambda x: lax.while_loop(goes_on, lambda x: x + 1, x), (X,)


@row("a predicate that needs the call only before the loop", {"a": "deduplicated 1", "e": "kept 2"})
def _(h):
    helper = helper_of(h)

    def f(x):
        goes_on = lambda s: s[0] & (helper(s[1]) < 50)  # noqa: E731
        return lax.while_loop(goes_on, lambda s: (False, s[1] + 1), (True, x))[1]

    return f, (X,)


@row("another call of the function, after the loop", {"a": "deduplicated 2", "e": "kept 4"})
def _(h):
    helper = helper_of(h)
    return lambda x, n: loop(helper)(x, n) + helper(x + 9), (X, TWO)


@row("another call of the function, with changes", {"a": "kept 4", "e": "kept 4"})
def _(h):
    helper = helper_of(h)
    return lambda x, n: loop(helper, 1.0)(x, n) + helper(x + 9), (X, TWO)


@row("two loops", {"a": "deduplicated 2", "e": "kept 6"})
def _(h):
    f = jax.jit(loop(helper_of(h)))
    return lambda x, n: f(x, n) + f(x + 1, n), (X, TWO)


@row("two loops with changes", {"a": "kept 6", "e": "kept 6"})
def _(h):
    f = jax.jit(loop(helper_of(h), 1.0))
    return lambda x, n: f(x, n) + f(x + 1, n), (X, TWO)


for length in (1, 3):

    @row(
        f"in a scan of length {length}", {"a": f"deduplicated {length}", "e": f"kept {3 * length}"}
    )
    def _(h, length=length):
        f = loop(helper_of(h))
        return lambda x, n: lax.scan(lambda c, _: (f(c, n) + 1, None), x, length=length)[0], (
            X,
            TWO,
        )

    @row(f"in a scan of length {length}, with changes", dict.fromkeys("ae", f"kept {3 * length}"))
    def _(h, length=length):
        f = loop(helper_of(h), 1.0)
        return lambda x, n: lax.scan(lambda c, _: (f(c, n), None), x, length=length)[0], (X, TWO)


for length, unroll in ((2, 2), (3, 2), (5, 2)):
    name = f"a scan of {length} in the predicate, with {unroll} iterations unrolled"

    @row(name, dict.fromkeys("ae", f"kept {3 * length}"))
    def _(h, length=length, unroll=unroll):
        helper = helper_of(h)
        add = lambda x: lambda total, y: (total + helper(x + y), None)  # noqa: E731
        xs = jnp.arange(float(length))
        calls = lambda x: lax.scan(add(x), x, xs, unroll=unroll)[0]  # noqa: E731
        return loop(calls, 1.0), (X, TWO)


@row("in the body of a while loop", {"a": "deduplicated 3", "e": "kept 9"})
def _(h):
    f = loop(helper_of(h))
    body = lambda n: lambda c: f(c, n) + 1  # noqa: E731
    return lambda x, n: lax.while_loop(lambda c: c < 5, body(n), x), (X, TWO)


@row("in a branch", {"a": "deduplicated 1", "e": "kept 3"})
def _(h):
    f = loop(helper_of(h))
    return lambda x, n: lax.cond(x > 0, lambda x: f(x, n), lambda x: x, x), (X, TWO)


@row("in differentiated code", {"a": "deduplicated 1", "e": "kept 3"})
def _(h):
    f = loop(helper_of(h))
    constant = lambda n: lambda x: x * f(lax.stop_gradient(x), n)  # noqa: E731
    return lambda x, n: jax.jvp(constant(n), (x,), (x,)), (X, TWO)


@row("a vmap in the predicate", {"a": "deduplicated 2", "e": "kept 3"})
def _(h):
    a, e = h.pure("a"), h.debug("e", ordered=True)
    helper = jax.jit(lambda x: (e(1.0), a(x))[1])
    return loop(lambda x: jax.vmap(helper)(x + jnp.arange(2.0)).sum()), (X, TWO)


@row("a vmap in the predicate, with changes", {"a": "kept 6", "e": "kept 3"})
def _(h):
    a, e = h.pure("a"), h.debug("e", ordered=True)
    helper = jax.jit(lambda x: (e(1.0), a(x))[1])
    return loop(lambda x: jax.vmap(helper)(x + jnp.arange(2.0)).sum(), 1.0), (X, TWO)


@pytest.mark.parametrize("unroll", [False, True])
def test_calls_of_a_loop_in_a_predicate_are_kept_if_they_change(unroll):
    h = Hosts()
    helper = helper_of(h)
    inner = lambda x: lax.fori_loop(0, 3, lambda i, c: helper(c) + i, x, unroll=unroll)  # noqa: E731
    assert found(loop(inner, 1.0))["a"] == ("kept", 9, "")
    assert h.calls == {"a": 9, "e": 9}


def test_predicate_in_a_predicate_has_four_copies_of_its_call():
    h = Hosts()
    helper = helper_of(h)
    assert found(lambda x, n: loop(lambda x: loop(helper, 0.5)(x, n), 1.0)(x, n))["a"] == (
        "kept", h.calls["e"], "",
    )  # fmt: skip
    status, calls, reason = found(lambda x, n: loop(lambda x: loop(helper)(x, n))(x, n))["a"]
    assert (status, calls) == ("deduplicated", 1)
    assert "4 call paths, 1 call kept outside the loop" in reason


def test_reason_counts_the_calls_before_the_loop_and_in_it():
    helper = helper_of(Hosts())
    _, _, reason = found(loop(helper))["a"]
    assert "2 call paths, 1 call kept outside the loop" in reason
    _, _, reason = found(lambda x, n: loop(helper)(x, n) + helper(x + 9))["a"]
    assert "3 call paths, 2 calls kept: " in reason


@pytest.mark.parametrize("step", [0.0, 1.0], ids=["the same arguments", "changing arguments"])
def test_observed_callback_of_jax_may_be_the_ordered_effect(step, capfd):
    a = Hosts().pure("a")
    helper = jax.jit(lambda x: (jax.debug.print("{}", x, ordered=True), a(x))[1])
    with jaxcb.observe_jax():
        expected = ("kept", 3) if step else ("deduplicated", 1)
        assert found(loop(helper, step))["a"][:2] == expected


def test_nothing_is_claimed_of_a_program_whose_loops_cannot_be_read(monkeypatch):
    def unreadable(data):
        raise ValueError("it is written in another tongue")

    monkeypatch.setattr("jupyter_jaxcb.stack.elision._predicates.Module", unreadable)
    assert found(loop(helper_of(Hosts())))["a"] == ("kept", 1, "")


def test_names_of_loops_do_not_tell_them_apart():
    """If they did, the predicates in a program could be found by the names of their loops."""
    helper = helper_of(Hosts())
    nested = jax.jit(lambda x, n: loop(lambda x: loop(helper, 0.5)(x, n), 1.0)(x, n))
    text = nested.lower(X, TWO).compile().as_text()
    loops = [
        line.split('op_name="')[1].split('"')[0] for line in text.splitlines() if " while(" in line
    ]
    assert len(set(loops)) < len(loops) == 3


def found(program):
    """Return status, calls and reason of each call site in a run of `program`."""
    with jaxcb.record() as recorded:
        jax.block_until_ready(jax.jit(program)(X, TWO))
        jax.effects_barrier()
    return {
        name: (str(one.status), one.calls, one.reason)
        for name, one in by_key(recorded.recording).items()
    }


@each(ROWS)
def test_each_call_site_has_the_expected_status(row):
    check(row)
