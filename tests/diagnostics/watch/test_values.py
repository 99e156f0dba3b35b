"""The numbers of masked batch elements, and the steps of loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb


def rows(seen, expression):
    return [row for row in seen.rows if row.expression == expression]


def to_the_end(steps, x):
    def body(carry):
        step, x = carry
        y = x * 2
        return step + 1, y

    return jax.lax.while_loop(lambda carry: carry[0] < steps, body, (0, x))


def test_every_counts_only_the_steps_of_batch_elements_that_go_on():
    steps = jnp.array([0, 3, 1, 5])
    with jaxcb.watching(every=2) as seen:
        jax.jit(jax.vmap(to_the_end))(steps, jnp.ones(4))
    found = {(row.steps, row.element) for row in rows(seen, "y")}
    assert found == {((n,), (k,)) for k, count in enumerate(steps) for n in range(0, count, 2)}


def doubled_if_positive(x):
    def positive(x):
        y = x * 2
        return y

    return jax.lax.cond(x[0] > 0, positive, lambda x: x, x)


@pytest.mark.parametrize("count", [4, 20])
def test_reduction_of_the_user_leaves_out_batch_elements_that_are_not_in_the_branch(count):
    x = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    with jaxcb.watching(norm=jnp.linalg.norm) as seen:
        jax.jit(jax.vmap(doubled_if_positive))(x)
    norms = [np.linalg.norm(2 * one) for one in x if one[0] > 0]
    expected = norms if count <= 16 else [np.mean(norms)]
    np.testing.assert_allclose([row.own["norm"] for row in rows(seen, "y")], expected, rtol=1e-5)


def test_loops_around_the_block_are_none_of_its_steps():
    for _ in range(2):
        with jaxcb.watching() as seen:
            for n in range(3):
                x = jnp.ones(2) * n
                del x
        assert [row.steps for row in rows(seen, "x")] == [(0,), (1,), (2,)]
