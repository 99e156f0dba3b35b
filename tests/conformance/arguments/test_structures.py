"""Registered pytree nodes reach the host, and come back, with their types."""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np
import pytest

from tests.conformance._every import our_returning_kinds, returning_kinds
from tests.conformance._parameters import SCALAR, THREE, TWO, X, eager_or_jit


@jax.tree_util.register_pytree_node_class
class Interval:
    """A pytree node with auxiliary data."""

    def __init__(self, low, high, unit):
        self.low, self.high, self.unit = low, high, unit

    def tree_flatten(self):
        return (self.low, self.high), self.unit

    @classmethod
    def tree_unflatten(cls, unit, children):
        return cls(*children, unit)


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Layer:
    weight: Any
    bias: Any
    name: str = dataclasses.field(default="", metadata={"static": True})


class Point(NamedTuple):
    x: Any
    y: Any = None


class Ordered(dict):
    """A dict whose leaves are in reverse order of its keys."""


jax.tree_util.register_pytree_with_keys(
    Ordered,
    lambda d: (
        [(jax.tree_util.DictKey(k), d[k]) for k in sorted(d, reverse=True)],
        tuple(sorted(d, reverse=True)),
    ),
    lambda keys, leaves: Ordered(zip(keys, leaves, strict=True)),
)

TREES = {
    "class": Interval(TWO, X, "meter"),
    "dataclass": Layer(X, TWO, "first"),
    "NamedTuple": Point(X, TWO),
    "NamedTuple holding None": Point(X),
    "own key order": Ordered(a=TWO, b=X),
    "nested": {"layers": [Layer(Point(X), Interval(TWO, TWO, None), "a"), None], "rest": ()},
}
trees = pytest.mark.parametrize("tree", TREES.values(), ids=TREES)


def structs(tree):
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)


def same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    jax.tree.map(np.testing.assert_array_equal, a, b)


@trees
@returning_kinds
def test_node_reaches_the_host_and_comes_back(maker, run, tree):
    """As a positional argument, as a keyword argument and as the result."""
    seen = []

    def host(given, *, named):
        seen.append((type(given), jax.tree.structure((given, named))))
        return jax.tree.map(lambda x, y: np.asarray(x) + 2 * np.asarray(y), given, named)

    f = maker(host, lambda given, *, named: structs(given))
    expected = jax.tree.map(lambda x: 3 * x, tree)
    same(run(lambda: f(tree, named=tree)), expected)
    same(run(jax.jit(lambda t: f(t, named=t)), tree), expected)
    assert seen == 2 * [(type(tree), jax.tree.structure((tree, tree)))]


@trees
@eager_or_jit
def test_node_reaches_a_debug_callback(debug, run, tree, compiled):
    seen = []
    f = debug(lambda given, *, named: seen.append((given, named)))
    run(compiled(lambda t: f(t, named=t)), tree)
    ((given, named),) = seen
    same(given, tree)
    same(named, tree)


@trees
def test_leaves_of_a_node_are_batched_by_vmap(pure, run, tree):
    stacked = jax.tree.map(lambda x: np.stack([x, x + 10, x + 20]), tree)
    seen = []

    def host(given):
        seen.append(jax.tree.map(lambda x: np.asarray(x).ravel()[0].item(), given))
        return jax.tree.map(lambda x: -np.asarray(x), given)

    f = pure(host, structs, vmap_method="sequential")
    same(run(jax.jit(jax.vmap(f)), stacked), jax.tree.map(np.negative, stacked))
    for element, got in enumerate(seen):
        same(got, jax.tree.map(lambda x, n=element: np.ravel(x)[0].item() + 10 * n, tree))
    assert len(seen) == 3


def test_new_auxiliary_data_of_a_node_causes_a_new_trace(pure, run):
    seen, traces = [], []

    def host(interval):
        seen.append(interval.unit)
        return np.asarray(interval.low)

    f = pure(host, SCALAR)

    @jax.jit
    def program(interval):
        traces.append(interval.unit)
        return f(interval)

    for unit in ("meter", "foot", "meter"):
        run(program, Interval(TWO, TWO, unit))
    assert seen == ["meter", "foot", "meter"]
    assert traces == ["meter", "foot"]


@returning_kinds
def test_none_is_allowed_in_arguments_and_results(maker, run):
    seen = []

    def host(nothing, x, *, none):
        seen.append((nothing, none))
        return None, [np.asarray(x), None]

    f = maker(host, lambda nothing, x, *, none: (None, [THREE, None]))
    for compiled in (lambda g: g, jax.jit):
        nothing, (x, none) = run(compiled(lambda x: f(None, x, none={"a": None})), X)
        assert nothing is none is None
        np.testing.assert_array_equal(x, X)
    assert seen == 2 * [(None, {"a": None})]


class Convertible:
    """An object with ``__array__`` that is not a NumPy scalar."""

    def __init__(self, value):
        self.value = value

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.value, dtype)


@pytest.mark.parametrize(
    ("result", "dtype", "expected"),
    [
        (True, "bool", True),
        (7, "int32", 7),
        (0.5, "float32", 0.5),
        (1 + 2j, "complex64", 1 + 2j),
        (Convertible(np.float32(0.25)), "float32", 0.25),
        (np.float32(3), "float32", 3),
        (np.array(4, np.int32), "int32", 4),
    ],
    ids=["bool", "int", "float", "complex", "__array__", "numpy scalar", "0-d array"],
)
@our_returning_kinds
def test_scalar_result_may_be_any_number(maker, run, result, dtype, expected):
    f = maker(lambda x: result, jax.ShapeDtypeStruct((), np.dtype(dtype)))
    for g in (f, jax.jit(f)):
        got = run(g, X)
        assert got.dtype == dtype
        assert got == expected


@returning_kinds
def test_keyword_arguments_may_be_passed_in_any_order(maker, run):
    seen = []

    def host(x, *, a, b):
        seen.append((np.asarray(a).item(), np.asarray(b).item()))
        return np.asarray(x)

    f = maker(host, lambda x, **_: THREE)
    run(jax.jit(lambda x: f(x, a=np.int32(1), b=np.int32(2))), X)
    run(jax.jit(lambda x: f(x, b=np.int32(2), a=np.int32(1))), X)
    assert seen == [(1, 2), (1, 2)]
