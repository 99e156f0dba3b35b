"""For random structures, matching results are accepted, and errors name the wrong key."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from tests.interface import ResultError, result_checker

from ._messages import message_of
from ._trees import (
    Pair,
    State,
    equivalent,
    name_of,
    places,
    result_to,
    results,
    wrong_leaves,
    wrong_nodes,
)


def checker(declared):
    structs, tree = jax.tree.flatten(declared)
    return result_checker("oracle", tree, [s.shape for s in structs], [s.dtype for s in structs])


def assert_same(got, wanted):
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert (type(a), a.shape, a.dtype) == (np.ndarray, b.shape, b.dtype)
        assert a.tobytes() == b.tobytes()


@settings(max_examples=200)
@given(results, st.data())
def test_matching_result_is_flattened_in_the_declared_order(declared, data):
    check = checker(declared)
    for seed in range(3):  # the first result determines how later ones are flattened
        returned_value = result_to(declared, seed)
        assert_same(check(returned_value), jax.tree.leaves(returned_value))
        assert_same(check(equivalent(returned_value, data.draw)), jax.tree.leaves(returned_value))
        scalars = jax.tree.map(
            lambda x: x[()] if x.shape == () else x.astype(x.dtype), returned_value
        )
        assert_same(check(scalars), jax.tree.leaves(returned_value))


@settings(max_examples=200)
@given(results, st.data())
def test_error_of_a_wrong_result_names_the_wrong_key(declared, data):
    check, returned_value = checker(declared), result_to(declared)
    path, node, put = data.draw(st.sampled_from(list(places(returned_value))))
    kinds = wrong_leaves(node) if isinstance(node, np.ndarray) else wrong_nodes(node)
    for what, wrong in list(kinds):
        with pytest.raises(ResultError) as caught:
            check(put(wrong))
        message = message_of(caught.value)
        if what != "keys that cannot be sorted":
            assert name_of(path) in message, (what, message)
    assert_same(check(returned_value), jax.tree.leaves(returned_value))  # an error changes nothing


@jax.tree_util.register_pytree_node_class
class Backwards(tuple):
    def __new__(cls, *elements):
        return super().__new__(cls, elements)

    def tree_flatten(self):
        return self[::-1], None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children[::-1])


SCALAR = jax.ShapeDtypeStruct((), np.float32)
ONE = np.float32(1)
FIRST_DIFFERENCES = {
    "missing key": (
        {"vel": ONE}, {"pos": SCALAR, "vel": SCALAR},
        "a dict of 'vel', expected a dict of 'pos', 'vel': oracle['pos'] is missing.",
    ),
    "extra key": (
        {"pos": ONE, "vel": ONE}, {"pos": SCALAR},
        "expected a dict of 'pos': oracle['vel'] was not expected.",
    ),
    "deep": (
        {"a": [{"x": ONE}, {"y": ONE}]}, {"a": ({"x": SCALAR}, {"x": SCALAR})},
        "oracle['a'][1] returned a dict of 'y', expected a dict of 'x': "
        "oracle['a'][1]['x'] is missing.",
    ),
    "shorter": ((ONE,), (SCALAR, SCALAR), "oracle returned a tuple of 1, expected a tuple of 2"),
    "longer": ([ONE, ONE], (SCALAR,), "a list of 2, expected a tuple of 1: oracle[1] was"),
    "tuple for dict": (
        (ONE, ONE), {"pos": SCALAR, "vel": SCALAR},
        "a tuple of 2, expected a dict of 'pos', 'vel'",
    ),
    "dict for list": (
        {"a": ONE, "b": ONE}, [SCALAR, SCALAR],
        "a dict of 'a', 'b', expected a list of 2",
    ),
    "array for dict": (ONE, {"a": SCALAR}, "returned an array float32[], expected a dict of"),
    "None for array": ({"a": None}, {"a": SCALAR}, "oracle['a'] returned None, expected an array"),
    "None for dict": (None, {"a": SCALAR}, "oracle returned None, expected a dict of 'a'"),
    "array for None": ((ONE, ONE), (SCALAR, None), "returned an array float32[], expected None"),
    "namedtuple": ((ONE, ONE), Pair(SCALAR, SCALAR), "a tuple of 2, expected a Pair of left"),
    "a longer namedtuple": (
        (ONE, Pair(ONE, ONE)), (SCALAR, (SCALAR,)),
        "oracle[1] returned a Pair of left, right, expected a tuple of 1. Return",
    ),
    "what JAX takes in another order": (
        (Backwards(ONE, np.float32(2)), ONE), ((SCALAR, SCALAR), SCALAR),
        "oracle[0] returned a Backwards of",
    ),
    "dataclass": (
        State(ONE, {}), State(SCALAR, SCALAR),
        "oracle.velocity returned {}, expected an array float32[]. Return one array",
    ),
    "empty for full": ({}, {"a": SCALAR}, "returned an empty dict, expected a dict of 'a'"),
    "full for empty": ([ONE], [], "oracle returned a list of 1, expected an empty list"),
    "another order": (
        collections.OrderedDict(b=ONE, a=ONE), collections.OrderedDict(a=SCALAR, b=SCALAR),
        "an OrderedDict of 'b', 'a', expected an OrderedDict of 'a', 'b': the",
    ),
    "static parts": (
        collections.defaultdict(int, a=ONE), collections.defaultdict(list, a=SCALAR),
        "their static fields differ: CustomNode(defaultdict",
    ),
    "many keys": (
        {str(k): ONE for k in range(100)}, {str(k): SCALAR for k in range(101)},
        "'0', '1', '10', '100', '11', '12' and 95 more: oracle['100'] is",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("returned_value", "declared", "words"), FIRST_DIFFERENCES.values(), ids=FIRST_DIFFERENCES
)
def test_error_names_the_first_key_that_differs(returned_value, declared, words):
    with pytest.raises(ResultError) as caught:
        checker(declared)(returned_value)
    message_of(caught.value, words)
    assert caught.value.__context__ is None


@pytest.mark.parametrize("how", ["eager", "jit", "vmap"])
def test_structure_is_checked_eagerly_compiled_and_under_vmap(how):
    returned_values = [{"pos": np.zeros(2, np.float32), "vel": [ONE]}]
    oracle = jaxcb.pure(result={"pos": jax.ShapeDtypeStruct((2,), np.float32), "vel": (SCALAR,)})(
        lambda x: returned_values[-1]
    )
    oracle = jax.jit(oracle) if how == "jit" else jax.vmap(oracle) if how == "vmap" else oracle
    x = jnp.zeros(3) if how == "vmap" else 0.0
    lead = (3,) if how == "vmap" else ()
    got = oracle(x)
    assert (got["pos"].shape, got["vel"][0].shape) == ((*lead, 2), lead)
    assert type(got["vel"]) is tuple
    returned_values.append({"pos": np.zeros(2, np.float32), "acc": (ONE,)})
    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as caught:
        jax.block_until_ready(oracle(x))
    assert "oracle['vel'] is missing" in str(jaxcb.host_error(caught.value))
    returned_values.pop()
    assert oracle(x)["pos"].shape == (*lead, 2)


def test_class_that_inspects_its_arrays_can_be_declared():
    """JAX builds such nodes with tracers, and we build one from shapes and dtypes for key paths."""

    @jax.tree_util.register_pytree_node_class
    class Square:
        def __init__(self, m):
            assert m.shape[0] == m.shape[1]
            self.m = m

        def tree_flatten(self):
            return (self.m,), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls(*children)

    declared = Square(jax.ShapeDtypeStruct((2, 2), np.float32))
    m = np.eye(2, dtype=np.float32)
    oracle = jaxcb.pure(lambda x: Square(m), result=(declared, SCALAR))
    with pytest.raises(Exception) as caught:
        oracle(0.0)
    assert "returned a Square of" in str(jaxcb.host_error(caught.value))
    assert np.array_equal(jaxcb.pure(lambda x: Square(m), result=declared)(0.0).m, m)
