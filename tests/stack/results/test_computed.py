"""Result expressions that compute with parameters, whose shapes and dtypes JAX works out."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

pytestmark = pytest.mark.kept

COMPUTED = {
    "x @ x.T": lambda x: x @ x.T,
    "jnp.linalg.inv(x[:, :2])": lambda x: np.linalg.inv(x[:, :2] + np.eye(2, dtype=x.dtype)),
    "(x.T, x.sum(axis=0), x.shape[:1], float)": lambda x: (
        x.T,
        x.sum(0),
        x[:, 0],
        np.float32(x[0, 0]),
    ),
    "{'y': x * 2, 'signs': [jnp.sign(x).astype(int), x]}": (
        lambda x: {"y": x * 2, "signs": [np.sign(x).astype(np.int32), x]}
    ),
    "jnp.concatenate([*x, x[0]])": lambda x: np.concatenate([*x, x[0]]),
}


@pytest.mark.parametrize(("expression", "function"), COMPUTED.items(), ids=COMPUTED)
def test_expression_may_compute_and_only_its_shapes_and_dtypes_count(expression, function):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    call = jaxcb.pure(function, result=expression)
    for got in (call(x), jax.jit(call)(x)):
        jax.tree.map(np.testing.assert_array_equal, got, function(x))
        assert [leaf.dtype for leaf in jax.tree.leaves(got)] == [
            leaf.dtype for leaf in jax.tree.leaves(function(x))
        ]
    batched = jax.vmap(call)(np.stack([x, x + 1]))
    for place in range(2):
        one = jax.tree.map(lambda leaf, place=place: leaf[place], batched)
        jax.tree.map(np.testing.assert_array_equal, one, function(x + place))


@pytest.mark.parametrize("expression", ["(x @ x.T, 3)", "(x.T, x.size)", "x.T.shape"])
def test_sizes_of_an_expression_that_computes_are_no_declaration(expression):
    call = jaxcb.pure(lambda x: x, result=expression)
    with pytest.raises(ValueError, match="has no shape and dtype"):
        call(np.ones((2, 3), np.float32))


def test_a_default_that_a_computing_expression_does_not_name_is_not_looked_at():
    class Unreadable(list):
        def __iter__(self):
            raise AssertionError("looked at")

    table = Unreadable([1, 2])
    call = jaxcb.pure(lambda x, table=table: x @ x, result="x @ x")
    assert call(np.ones((2, 2), np.float32)).tolist() == [[2, 2], [2, 2]]


def test_what_an_expression_declared_follows_x64_and_what_it_names_besides_its_parameters():
    numbers = jaxcb.pure(lambda x: (1.0, x), result="(float, x)")
    for on in (False, True, False):
        with jax.enable_x64(on):
            found = [leaf.dtype.name for leaf in numbers(np.float32(1))]
            assert found == ["float64" if on else "float32", "float32"]
    scope = {"np": np, "declared": jax.ShapeDtypeStruct((2,), np.float32)}
    exec("def rows(x): return np.full(2, x)", scope)
    rows = jaxcb.pure(scope["rows"], result="declared")
    assert rows(np.float32(1)).dtype == np.float32
    scope["declared"] = jax.ShapeDtypeStruct((2,), np.float16)
    assert rows(np.float32(1)).dtype == np.float16
