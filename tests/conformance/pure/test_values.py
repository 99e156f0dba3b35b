"""A pure callback passes arguments and results, values and structure, as NumPy arrays."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from tests.conformance._parameters import FIVE_TO_2, SCALAR, THREE, ZERO, like_first, shapes, values

# A first callback


def wave(x, y):
    """Return ``sin(x)*y + 1``; the axes of y, if any, are the leading axes of x."""
    return np.sin(x) * np.reshape(y, y.shape + (1,) * (x.ndim - y.ndim)) + np.float32(1)


X = np.linspace(-1, 1, 9, dtype=np.float32).reshape(3, 3)
XS = np.linspace(-2, 2, 90, dtype=np.float32).reshape(10, 3, 3)
Y = np.float32(1.5)


def test_result_of_the_host_function_can_be_used_in_a_jitted_program(pure, spy, run):
    host, seen = spy(wave)
    f = pure(host, like_first)
    returned_value = run(jax.jit(lambda x, y: jnp.sum(f(x, y) ** 2)), X, Y)
    np.testing.assert_allclose(returned_value, np.sum((np.sin(X) * Y + 1) ** 2), rtol=1e-5)
    assert shapes(seen) == [((3, 3), ())]


def test_every_call_of_a_compiled_program_calls_the_host_once(pure, spy, run):
    """Later runs, which JAX does not trace, call the host too."""
    host, seen = spy(np.sin)
    f = jax.jit(pure(host, like_first))
    for number in range(4):
        np.testing.assert_allclose(run(f, np.float32(number)), np.sin(number), rtol=1e-6)
    assert values(seen) == [(0.0,), (1.0,), (2.0,), (3.0,)]


# Structures

V = np.array([1, 2, 6], np.float32)


def test_two_results_come_back_as_the_declared_tuple(pure, spy, run):
    host, seen = spy(lambda x: (x.sum(), x.mean()))
    f = pure(host, (SCALAR, SCALAR))
    returned_value = run(jax.jit(f), V)
    assert type(returned_value) is tuple
    assert [(a.shape, a.dtype.name, a.item()) for a in returned_value] == [
        ((), "float32", 9.0),
        ((), "float32", 3.0),
    ]
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("result", "returned_value"),
    [
        (SCALAR, 9.0),
        ((SCALAR,), (9.0,)),
        ([SCALAR, THREE], [9.0, V]),
        ({"low": SCALAR, "all": {"same": THREE}}, {"low": 1.0, "all": {"same": V}}),
        ({"pair": (SCALAR, [THREE, None])}, {"pair": (9.0, [V, None])}),
        (((), {}, None, THREE), ((), {}, None, V)),
    ],
    ids=["leaf", "tuple of one", "list", "dicts", "None inside", "empty ones inside"],
)
def test_any_structure_can_be_the_result(pure, spy, run, result, returned_value):
    host, seen = spy(lambda x: jax.tree.map(np.float32, returned_value))
    f = pure(host, result)
    got = run(f, V)
    assert jax.tree.structure(got) == jax.tree.structure(returned_value)
    jax.tree.map(np.testing.assert_array_equal, got, returned_value)
    got = run(jax.jit(f), V)
    assert jax.tree.structure(got) == jax.tree.structure(returned_value)
    assert len(seen) == 2


def test_pytrees_and_keyword_arguments_reach_the_host_unchanged(pure, run):
    seen = []

    def host(tree, *, scale, shift):
        seen.append(jax.tree.structure((tree, scale, shift)))
        a, (b, c) = (np.asarray(tree["a"]), map(np.asarray, tree["bc"]))
        return (a + b * c) * np.asarray(scale) + np.asarray(shift[0])

    f = pure(host, lambda tree, **_: THREE)
    arguments = {"a": V, "bc": (V + 1, [V][0] + 2)}
    keywords = {"scale": np.float32(2), "shift": [np.float32(1), None]}
    expected = (V + (V + 1) * (V + 2)) * 2 + 1
    np.testing.assert_allclose(run(lambda: f(arguments, **keywords)), expected)
    np.testing.assert_allclose(run(jax.jit(lambda a: f(a, **keywords)), arguments), expected)
    assert seen == 2 * [jax.tree.structure((arguments, keywords["scale"], keywords["shift"]))]


def test_vmap_batches_keyword_arguments_too(pure, run):
    seen = []

    def host(x, *, y):
        seen.append((np.asarray(x).item(), np.asarray(y).item()))
        return np.asarray(x) * np.asarray(y)

    f = pure(host, lambda x, *, y: like_first(x), vmap_method="sequential")
    returned_value = run(jax.vmap(lambda x, y: f(x, y=y)), V, V + 1)
    np.testing.assert_allclose(returned_value, V * (V + 1))
    assert seen == [(1.0, 2.0), (2.0, 3.0), (6.0, 7.0)]


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
