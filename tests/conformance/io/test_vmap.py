"""Under vmap an io callback is called element by element; ordered callbacks are refused."""

import jax
import numpy as np
import pytest
from jax import lax

from tests.conformance._parameters import FIVE_FROM_0, SCALAR, eager_or_jit, like_first


def numbers(seen):
    return [x.item() for (x,) in seen]


# Batch elements


@eager_or_jit
def test_vmap_calls_once_per_batch_element_in_order(io, spy, run, noise, compiled):
    sample, expected = noise
    host, seen = spy(sample)
    result = run(compiled(jax.vmap(io(host, like_first))), FIVE_FROM_0)
    np.testing.assert_array_equal(result, [expected() for _ in range(5)])
    assert [x.shape for (x,) in seen] == 5 * [()]
    assert numbers(seen) == [0, 1, 2, 3, 4]


def test_batch_elements_follow_the_in_axes(io, run):
    """With in_axes (1, None) every call gets a column of x and the unbatched y."""
    seen = []

    def host(x, y):
        seen.append((np.array(x).tolist(), np.array(y).item()))
        return np.asarray(x) + np.asarray(y)

    f = jax.vmap(io(host, lambda x, y: like_first(x)), in_axes=(1, None), out_axes=1)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_array_equal(run(jax.jit(f), x, np.float32(10)), x + 10)
    assert seen == [([0.0, 3.0], 10.0), ([1.0, 4.0], 10.0), ([2.0, 5.0], 10.0)]


def test_vmap_without_a_batched_argument_makes_one_call(io, spy, run, noise):
    """All batch elements get the same random number."""
    sample, expected = noise
    host, seen = spy(sample)
    f = io(host, like_first)
    result = run(jax.vmap(lambda x: x + f(np.float32(0))), FIVE_FROM_0)
    np.testing.assert_allclose(result, FIVE_FROM_0 + expected(), rtol=1e-6)
    assert len(seen) == 1


# Ordered callbacks


@eager_or_jit
def test_vmap_refuses_ordered_callbacks(io, spy, compiled):
    """JAX is still tracing, so the host is not called."""
    host, seen = spy(lambda x: x)
    with pytest.raises(ValueError, match="Cannot `vmap` ordered IO callback"):
        compiled(jax.vmap(io(host, like_first, ordered=True)))(FIVE_FROM_0)
    assert seen == []


@eager_or_jit
def test_batched_while_predicate_refuses_an_ordered_callback(io, compiled):
    """The callback has no batched operand, but batch elements need different numbers of calls."""
    seen = []

    def host():
        seen.append(None)
        return np.float32(1)

    one = io(host, SCALAR, ordered=True)

    def count(limit):
        return lax.while_loop(lambda c: c + one() - 1 < limit, lambda c: c + 1, np.float32(0))

    with pytest.raises(Exception, match=r"(?i)ordered IO effects not supported"):
        compiled(jax.vmap(count))(np.float32([1, 3, 2]))
    assert seen == []
