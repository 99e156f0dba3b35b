"""Taps and calls in loops and branches, also under vmap and grad."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from jupyter_jaxcb import host_callback as hcb

from .conftest import batch


def branch(seen, x, p):
    yes = lambda x: hcb.id_tap(seen, ("yes", x)[1]) + 1  # noqa: E731
    return lax.cond(p, yes, lambda x: hcb.id_tap(seen, -x), x)


@pytest.mark.parametrize(("p", "value"), [(True, 2.0), (False, -2.0)])
def test_cond_taps_the_branch_that_is_taken(seen, p, value):
    seen.of(jax.jit(functools.partial(branch, seen)), 2.0, p)
    assert seen.values == [value]


def test_switch_taps_the_branch_that_is_taken(seen):
    f = jax.jit(lambda i: lax.switch(i, [lambda n=n: hcb.id_tap(seen, n) for n in range(3)]))
    assert [int(seen.of(f, i)) for i in (2, 0)] == [2, 0]
    assert seen.values == [0]


def test_batched_predicate_taps_both_branches_with_the_whole_batch(seen):
    f = jax.vmap(functools.partial(branch, seen))
    back = seen.of(f, jnp.arange(3.0), jnp.array([True, False, True]))
    assert back.tolist() == [1, -1, 3]
    assert seen.values == [[0, -1, -2], [0, 1, 2]]  # the false branch comes first
    assert seen.transforms == [(batch(0),)] * 2


def test_unbatched_predicate_taps_one_branch_with_the_batch(seen):
    f = jax.vmap(functools.partial(branch, seen), in_axes=(0, None))
    assert seen.of(f, jnp.arange(3.0), True).tolist() == [1, 2, 3]
    assert (seen.values, seen.transforms) == ([[0, 1, 2]], [(batch(0),)])


def test_loops_tap_every_step_in_the_order_of_the_body(seen):
    def body(c, x):
        return hcb.id_tap(seen, c) + hcb.id_tap(seen, 10 * x), None

    assert seen.of(lambda: lax.scan(body, 0, jnp.arange(3)))[0] == 30
    assert seen.values == [0, 0, 0, 10, 10, 20]
    seen.of(lambda: lax.scan(body, 0, jnp.arange(3), reverse=True))
    assert seen.values == [0, 20, 20, 10, 30, 0]
    seen.of(lambda: lax.fori_loop(0, 3, lambda i, c: hcb.id_tap(seen, i), 0))
    assert seen.values == [0, 1, 2]
    seen.of(lambda: lax.map(lambda x: hcb.id_tap(seen, x), jnp.arange(3)))
    assert seen.values == [0, 1, 2]


def test_loop_of_length_0_taps_nothing(seen):
    seen.of(jax.jit(lambda x: lax.scan(lambda c, _: (hcb.id_tap(seen, c), None), x, None, 0)), 1.0)
    assert seen.calls == []


def test_grad_of_a_loop_taps_forward_only(seen):
    scan = lambda x: lax.scan(  # noqa: E731
        lambda c, i: (hcb.id_tap(seen, c) * x + 0 * hcb.id_tap(seen, i), None), 1.0, jnp.arange(3)
    )[0]
    assert seen.of(jax.grad(scan), 2.0) == 12.0
    assert seen.values == [1, 0, 2, 1, 4, 2]
    fori = lambda x: lax.fori_loop(0, 3, lambda i, c: hcb.id_tap(seen, c) * x, 1.0)  # noqa: E731
    assert seen.of(jax.jit(jax.grad(fori)), 2.0) == 12.0
    assert seen.values == [1, 2, 4]


UNCHANGED = {
    "constant": lambda seen, x: hcb.id_tap(seen, 7),
    "argument": lambda seen, x: hcb.id_tap(seen, x),
    "stop_gradient": lambda seen, x: hcb.id_tap(seen, lax.stop_gradient(x)),
    "inner jit": lambda seen, x: jax.jit(lambda: hcb.id_tap(seen, x))(),
    "inner cond": lambda seen, x: lax.cond(x > 0, lambda: hcb.id_tap(seen, x), lambda: x),
}


@pytest.mark.long
@pytest.mark.parametrize("tap", UNCHANGED.values(), ids=UNCHANGED)
@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_loop_invariant_tap_stays_in_a_differentiated_loop(seen, around, tap):
    """Under grad, JAX hoists loop-invariant computations out of a scan, but not taps."""
    f = lambda x: lax.scan(  # noqa: E731
        lambda c, _: (c * tap(seen, x) * x, None), 1.0, None, length=3
    )[0]
    with jax.disable_jit():
        slope = jax.grad(f)(2.0)
    np.testing.assert_allclose(seen.of(around(jax.grad(f)), 2.0), slope)
    assert len(seen.calls) == 3
    seen.of(around(jax.grad(lambda x: lax.scan(lambda c, _: (f(c), None), x, None, 2)[0])), 2.0)
    assert len(seen.calls) == 6


def test_loop_invariant_call_stays_in_a_differentiated_loop():
    calls = []

    def host(x):
        calls.append(float(x))
        return x

    def f(x):
        step = lambda c, _: (  # noqa: E731
            c * x * hcb.call(host, lax.stop_gradient(x), result_shape=x), None
        )  # fmt: skip
        return lax.scan(step, 1.0, None, length=3)[0]

    assert jax.block_until_ready(jax.grad(f)(2.0)) == 96.0
    hcb.barrier_wait()
    assert calls == [2.0] * 3


def test_unused_tap_in_a_loop_runs_under_grad(seen):
    """JAX 0.4.30 removed such a tap."""
    f = lambda x: lax.scan(  # noqa: E731
        lambda c, i: ((hcb.id_tap(seen, c), hcb.id_tap(seen, i), c * x)[2], None),
        1.0, jnp.arange(3),
    )[0]  # fmt: skip
    assert seen.of(jax.jit(jax.grad(f)), 2.0) == 12.0
    assert seen.values == [1, 0, 2, 1, 4, 2]


def test_vmap_of_a_scan_taps_batches(seen):
    f = jax.vmap(
        lambda x, xs: lax.scan(lambda c, y: (c + hcb.id_tap(seen, y), None), x, xs)[0],
        in_axes=(0, 1),
    )
    assert seen.of(f, jnp.arange(2), jnp.arange(6).reshape(3, 2)).tolist() == [6, 10]
    assert seen.values == [[0, 1], [2, 3], [4, 5]]
    assert seen.transforms == [(batch(0),)] * 3


def test_while_loop_taps_its_predicate_once_more_than_its_body(seen):
    f = lambda x: lax.while_loop(  # noqa: E731
        lambda x: hcb.id_tap(seen, x < 3), lambda x: hcb.id_tap(seen, x) + 1, x
    )
    assert seen.of(jax.jit(f), 1) == 3
    assert seen.values == [True, 1, True, 2, False]


def test_while_loop_with_a_batched_predicate_taps_until_all_elements_have_finished(seen):
    """For batch elements that have finished, taps show the body applied to their last value."""
    f = jax.vmap(lambda x: lax.while_loop(lambda x: x < 2, lambda x: hcb.id_tap(seen, x + 1), x))
    assert seen.of(f, jnp.arange(4)).tolist() == [2, 2, 2, 3]
    assert seen.values == [[1, 2, 3, 4], [2, 3, 3, 4]]
    assert seen.transforms == [(batch(0),)] * 2


def up_to_2(seen):
    return lambda x: lax.while_loop(lambda x: hcb.id_tap(seen, x < 2), lambda x: x + 1, x)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_tap_in_a_batched_predicate_gets_the_batch_and_results_are_correct(seen, around):
    """JAX's lowering would continue finished elements too and return 2, 3, 4, 5."""
    assert seen.of(around(jax.vmap(up_to_2(seen))), jnp.arange(4)).tolist() == [2, 2, 2, 3]
    assert seen.values == [[True, True, False, False], [True] + [False] * 3, [False] * 4]
    assert seen.transforms == [(batch(0),)] * 3


def test_batched_predicate_in_two_vmaps(seen):
    f = jax.vmap(jax.vmap(up_to_2(seen)))
    assert seen.of(f, jnp.arange(6).reshape(2, 3)).tolist() == [[2, 2, 2], [3, 4, 5]]
    assert seen.transforms == [(batch(0), batch(0))] * 3


def test_batched_predicate_with_carries_of_every_kind(seen):
    """One carry is a vector, one has an unbatched initial value, and one is a key."""

    def f(x, key):
        state = lax.while_loop(
            lambda s: hcb.id_tap(seen, s["x"] < 2),
            lambda s: s | {"x": s["x"] + 1, "a": 2 * s["a"], "n": s["n"] + 1},
            {"x": x, "a": jnp.ones(2), "n": 0, "key": key},
        )
        return state["x"], state["a"], state["n"], jax.random.key_data(state["key"])

    keys = jax.random.split(jax.random.key(0), 3)
    x, a, n, key = seen.of(jax.vmap(f), jnp.arange(3), keys)
    assert (x.tolist(), n.tolist()) == ([2, 2, 2], [2, 1, 0])
    assert a.tolist() == [[4, 4], [2, 2], [1, 1]]
    np.testing.assert_array_equal(key, jax.random.key_data(keys))


def test_loops_without_taps_use_the_rule_of_jax(seen):
    seen.of(jax.vmap(up_to_2(seen)), jnp.arange(3))  # installs our rule for loops
    f = jax.vmap(lambda x: lax.while_loop(lambda x: x < 2, lambda x: x + 1, x))
    assert f(jnp.arange(4)).tolist() == [2, 2, 2, 3]
    assert lax.while_loop(lambda x: x < 5, lambda x: x + 1, 0) == 5


def test_taps_work_in_linear_solve_and_custom_vmap(seen):
    solve = lambda _, b: hcb.id_tap(seen, b) / 2  # noqa: E731
    f = lambda b: lax.custom_linear_solve(lambda x: 2 * x, b, solve)  # noqa: E731
    assert seen.of(f, jnp.arange(2.0)).tolist() == [0, 0.5]
    assert seen.values == [[0, 1]]

    @jax.custom_batching.custom_vmap
    def g(x):
        return x

    @g.def_vmap
    def rule(size, batched, x):
        return hcb.id_tap(seen, x) + 1, True

    assert seen.of(jax.vmap(g), jnp.arange(2.0)).tolist() == [1, 2]
    assert seen.values == [[0, 1]]


def test_reducer_with_a_tap_is_refused_by_jax(seen):
    with pytest.raises(NotImplementedError, match="reduce"):
        lax.reduce(jnp.arange(4.0), 0.0, lambda a, b: hcb.id_tap(seen, a + b), (0,))
