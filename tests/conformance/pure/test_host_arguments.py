"""Host functions get plain NumPy arrays, which they may keep, and they may use JAX."""

import jax
import numpy as np
import pytest
from jax import lax

from tests.conformance._arrays import FIVE_TO_2, ZERO, like_first


def test_host_function_gets_plain_read_only_numpy_arrays(our_pure, run):
    """JAX's callbacks pass JAX arrays, and using those inside a callback may deadlock."""
    seen = []

    def host(x, tree):
        for array in (x, *tree):
            seen.append((type(array), array.flags.writeable))
        return x + 1

    f = our_pure(host, like_first, vmap_method="sequential")
    for g in (f, jax.jit(f)):
        np.testing.assert_array_equal(run(g, FIVE_TO_2, (ZERO, FIVE_TO_2)), FIVE_TO_2 + 1)
    run(jax.vmap(f), FIVE_TO_2, (FIVE_TO_2, FIVE_TO_2))
    assert seen == (2 + 5) * 3 * [(np.ndarray, False)]


def test_host_function_may_keep_its_arguments_forever(our_pure, run):
    """They are copies, so later calls do not overwrite them."""
    kept = []

    def host(x):
        kept.append(x)
        return x + 1

    f = our_pure(host, like_first)
    loop = jax.jit(lambda x: lax.fori_loop(0, 20, lambda _, c: f(c), x))
    for _ in range(3):
        np.testing.assert_array_equal(
            run(loop, np.zeros((50, 50), np.float32)), np.full((50, 50), 20)
        )
    assert [(x.min(), x.max()) for x in kept] == 3 * [(i, i) for i in range(20)]


@pytest.mark.filterwarnings("ignore:.*another callback")
def test_host_function_may_run_jax_and_other_callbacks(our_pure, spy, run):
    """No lock is held during a host call, so a callback may run inside another one."""
    inner, seen = spy(np.sin)
    f = our_pure(inner, like_first)
    g = our_pure(lambda x: np.asarray(jax.jit(f)(np.asarray(x))) + 1, like_first)
    np.testing.assert_allclose(run(g, np.float32(2)), np.sin(np.float32(2)) + 1, rtol=1e-6)
    assert len(seen) == 1
