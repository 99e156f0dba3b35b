"""Calls in the derivative rule of a masked call, wherever they are in it: those of the elements."""

from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.float32([-2, 3, -1, 1, 2])
NEEDED = X > 0


@pytest.fixture
def seen():
    """The arguments of the calls of `log`, in a rule: those of the elements, each once."""
    return Counter()


def gradient_with(rule):
    """Return the gradients, for all elements, of masked squares whose slope `rule` computes."""
    square = jaxcb.pure(lambda x: x**2, result="x")
    square.defjvp(lambda p, t: (square(*p), rule(*p) * t[0]))
    return jax.vmap(jax.grad(lambda x: square.where(x > 0, x, otherwise=0.0)))


def in_scan(log, x):
    def step(total, n):
        log(n, x)
        return total + x, None

    return jax.lax.scan(step, 0 * x, jnp.arange(2))[0]


def in_while(log, x):
    def body(state):
        n, total = state
        log(n, x)
        return n + 1, total + x

    return jax.lax.while_loop(lambda state: state[0] < 2, body, (0, 0 * x))[1]


def in_cond(log, x):
    jax.lax.cond(x > 1.5, lambda: log(0, x), lambda: None)
    jax.lax.cond(x > 1.5, lambda: log(1, x), lambda: None)
    return 2 * x


def in_switch_of_jit(log, x):
    calls = [lambda n=n: (log(n, x), 2 * x)[1] for n in range(3)]
    return jax.jit(lambda: jax.lax.switch(x.astype(int) % 3, calls))()


def in_vmap(log, x):
    jax.vmap(lambda n: log(n, x))(jnp.arange(2))
    return 2 * x


TEXT = {
    in_scan: lambda x: [(0, x), (1, x)],
    in_while: lambda x: [(0, x), (1, x)],
    in_cond: lambda x: [(0, x), (1, x)] if x > 1.5 else [],
    in_switch_of_jit: lambda x: [(int(x) % 3, x)],
    in_vmap: lambda x: [(0, x), (1, x)],
}


@pytest.mark.parametrize("jitted", [False, True])
@pytest.mark.parametrize("flavor", [jaxcb.io, jaxcb.debug])
@pytest.mark.parametrize("rule", TEXT)
def test_a_rule_calls_for_the_needed_elements_as_often_as_its_text_says(seen, rule, flavor, jitted):
    log = flavor(
        lambda n, x: seen.update([(int(n), float(x))]),
        **({"result": None} if flavor is jaxcb.io else {}),
    )
    gradient = gradient_with(lambda x: rule(log, x))
    np.testing.assert_array_equal(
        (jax.jit(gradient) if jitted else gradient)(X), np.where(NEEDED, 2 * X, 0)
    )
    jax.effects_barrier()
    assert seen == Counter(call for x in X[NEEDED] for call in TEXT[rule](float(x)))


def test_a_loop_of_a_rule_that_waits_for_host_results_ends_where_the_mask_is_false(seen):
    half = jaxcb.pure(lambda x: (seen.update([float(x)]), x / 2)[1], result="x")

    def rule(x):
        end = jax.lax.while_loop(lambda y: y > 0.5, half, x)
        return 2 * x + 0 / end

    np.testing.assert_array_equal(jax.jit(gradient_with(rule))(X), np.where(NEEDED, 2 * X, 0))
    assert seen == Counter({3: 1, 1.5: 1, 0.75: 1, 2: 1, 1: 2})
    seen.clear()
    np.testing.assert_array_equal(jax.jit(gradient_with(rule))(-np.abs(X)), 0 * X)
    assert not seen


@pytest.mark.parametrize("needed", [True, False])
@pytest.mark.parametrize("jitted", [False, True])
def test_ordered_call_in_the_rule_of_a_call_that_is_not_needed_is_not_made(jitted, needed):
    seen = []
    slope = jaxcb.io(lambda x: (seen.append(float(x)), 2 * x)[1], result="x", ordered=True)
    square = jaxcb.pure(lambda x: x**2, result="x")
    square.defjvp(lambda p, t: (square(*p), slope(*p) * t[0]))
    gradient = jax.grad(lambda x: square.where(x > 0, x, otherwise=0.0))
    gradient = jax.jit(gradient) if jitted else gradient
    assert gradient(jnp.float32(3 if needed else -1)) == 6 * needed
    assert seen == [3] * needed


@pytest.mark.parametrize("jitted", [False, True])
def test_a_rule_of_an_empty_batch_makes_no_call(seen, jitted):
    slope = jaxcb.io(lambda w, x: (seen.update([1]), 2 * w * x)[1], result="x")
    scaled = jaxcb.pure(lambda w, x: w * x**2, result="x")
    scaled.defjvp(lambda p, t: (scaled(*p), slope(*p) * t[1]))
    gradient = jax.grad(lambda x, w: scaled.where(x > 0, w, x, otherwise=0.0))
    gradient = jax.vmap(gradient, (0, None))
    gradient = jax.jit(gradient) if jitted else gradient
    assert gradient(X[:0], jnp.float32(3)).shape == (0,)
    assert not seen


def test_batched_functions_of_a_rule_get_the_needed_rows(seen):
    slope = jaxcb.io(
        lambda x: (seen.update([x.shape]), 2 * x)[1], result="x", vmap_method="expand_dims"
    )
    gradient = jax.jit(gradient_with(lambda x: jax.jit(slope)(x)))
    np.testing.assert_array_equal(gradient(X), np.where(NEEDED, 2 * X, 0))
    assert seen == {(3,): 1}


def test_drop_ins_in_a_rule_are_called_for_all_elements_with_those_of_a_needed_one(seen):
    def slope(x):
        return jaxcb.pure_callback(
            lambda x: (seen.update([float(x)]), 2 * x)[1], x, x, vmap_method="sequential"
        )

    np.testing.assert_array_equal(jax.jit(gradient_with(slope))(X), np.where(NEEDED, 2 * X, 0))
    assert seen == {3: 3, 1: 1, 2: 1}


@pytest.mark.parametrize("reverse", [False, True])
def test_masks_of_rules_in_rules_combine(seen, reverse):
    """The rule of the outer call makes a masked call, whose rule makes another one."""
    curve = jaxcb.pure(lambda x: (seen.update([float(x)]), 0 * x + 2)[1], result="x")
    slope = jaxcb.pure(lambda x: 2 * x, result="x")
    slope.defjvp(lambda p, t: (slope(*p), jax.jit(curve)(*p) * t[0]))
    square = jaxcb.pure(lambda x: x**2, result="x")

    def of_slope(x):
        return slope.where(x > 1.5, x, otherwise=7.0)

    if reverse:
        square.defvjp(lambda x: (square(x), x), lambda x, ct: (of_slope(x) * ct,))
    else:
        square.defjvp(lambda p, t: (square(*p), of_slope(*p) * t[0]))
    second = jax.vmap(jax.grad(jax.grad(lambda x: square.where(x > 0, x, otherwise=0.0))))
    np.testing.assert_array_equal(jax.jit(second)(X), np.where(X > 1.5, 2, 0))
    assert seen == {3: 1, 2: 1}


def test_pure_calls_of_a_shard_map_in_a_branch_are_made_for_all_elements_and_io_is_refused():
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("d",))

    def program(function):
        mapped = jax.shard_map(
            function, mesh=mesh, in_specs=jax.P(), out_specs=jax.P(), check_vma=False
        )
        return jax.vmap(lambda x: jax.lax.cond(x > 0, mapped, lambda x: x, x))

    seen = Counter()
    double = jaxcb.pure(lambda x: (seen.update([float(x)]), 2 * x)[1], result="x")
    np.testing.assert_array_equal(program(double)(X), np.where(NEEDED, 2 * X, X))
    assert seen == dict.fromkeys(X, 1)

    @jaxcb.io(result="x")
    def double(x):
        return 2 * x

    with pytest.raises(NotImplementedError, match=r"cannot vmap double.* in shard_map in a branch"):
        program(double)(X)
