"""Random declared results, matching results, and results that are wrong in one place."""

import collections
import dataclasses

import jax
import ml_dtypes
import numpy as np
from hypothesis import strategies as st
from jax.tree_util import DictKey, GetAttrKey, SequenceKey, keystr

Pair = collections.namedtuple("Pair", "left right")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class State:
    position: object
    velocity: object


DTYPES = [np.dtype(name) for name in ("float32", "int8", "uint16", "bool", "complex64")]
DTYPES.append(np.dtype(ml_dtypes.bfloat16))
shapes = st.lists(st.integers(0, 3), max_size=2).map(tuple)
leaves = st.builds(jax.ShapeDtypeStruct, shapes, st.sampled_from(DTYPES))
keys = st.sampled_from(["pos", "vel", "a", "b", "loss"])


def _containers(below):
    return st.one_of(
        st.dictionaries(keys, below, max_size=3),
        st.lists(below, max_size=3),
        st.lists(below, max_size=3).map(tuple),
        st.builds(Pair, below, below),
        st.builds(State, below, below),
    )


results = st.recursive(leaves | st.none(), _containers, max_leaves=6)


def children(node):
    """List the child nodes: the key as JAX writes it, the child, a function that replaces it."""
    if isinstance(node, dict):
        return [(DictKey(key), node[key], lambda x, k=key: {**node, k: x}) for key in sorted(node)]
    if isinstance(node, Pair):
        return [(GetAttrKey(n), getattr(node, n), lambda x, n=n: node._replace(**{n: x}))
                for n in Pair._fields]  # fmt: skip
    if isinstance(node, State):
        change = dataclasses.replace
        return [(GetAttrKey(n), getattr(node, n), lambda x, n=n: change(node, **{n: x}))
                for n in ("position", "velocity")]  # fmt: skip
    if isinstance(node, list | tuple):
        kind = type(node)
        return [(SequenceKey(i), x, lambda new, i=i: kind([*node[:i], new, *node[i + 1 :]]))
                for i, x in enumerate(node)]  # fmt: skip
    return []


def places(node, path=(), put=lambda new: new):
    """Yield every node with its path, and a function that returns the tree with it replaced."""
    yield path, node, put
    for key, child, at in children(node):
        yield from places(child, (*path, key), lambda new, at=at: put(at(new)))


def result_to(declared, seed=0):
    """Return a matching result: arrays of exactly the declared shapes and dtypes."""
    random = np.random.default_rng(seed)

    def array(struct):
        return np.asarray(random.integers(0, 2, struct.shape) * 1.0).astype(struct.dtype)

    return jax.tree.map(array, declared)


def as_namedtuple(elements):
    names = [f"n{len(elements) - i}" for i in range(len(elements))]
    return collections.namedtuple("Result", names)(*elements)


def equivalent(node, draw):
    """Return an equivalent result: lists for tuples, dict keys in another order.

    Tuples may also become namedtuples, whose field names sort differently than their elements.
    """
    if type(node) is dict:
        items = draw(st.permutations(sorted(node.items())))
        return {key: equivalent(child, draw) for key, child in items}
    if type(node) in (list, tuple):
        kind = draw(st.sampled_from([list, tuple, as_namedtuple]))
        return kind([equivalent(child, draw) for child in node])
    if isinstance(node, Pair):
        return Pair(*(equivalent(child, draw) for child in node))
    if isinstance(node, State):
        return State(equivalent(node.position, draw), equivalent(node.velocity, draw))
    return node


def wrong_leaves(array):
    """Yield results that must not be accepted for an array, with their names."""
    yield "None", None
    yield "another shape", np.zeros((*array.shape, 7), array.dtype)
    yield "a list", [array]
    yield "a dict", {"x": array}
    yield "an empty tuple", ()
    yield "text", np.full(array.shape, "x")
    yield "objects", np.full(array.shape, None)
    yield "dates", np.zeros(array.shape, "M8[s]")
    yield "named fields", np.zeros(array.shape, [("x", "f4"), ("y", "f4")])
    yield "a mask", np.ma.masked_array(np.zeros(array.shape, array.dtype))
    yield "a generator", (x for x in ())
    yield "a set", {1, 2}
    yield "a ragged list", [[1], [2, 3]]
    yield "a key", jax.random.key(0)
    if array.dtype != np.complex64:
        yield "another kind", np.zeros(array.shape, np.complex64)


def wrong_nodes(node):
    """Yield results that must not be accepted for a container, with their names."""
    yield "an array", np.zeros(3, np.float32)
    if node is not None:
        yield "None", None
    if isinstance(node, dict):
        yield "an extra key", {**node, "zz": np.float32(1)}
        yield "another type", list(node.values())
        if node:
            less = {key: node[key] for key in list(node)[1:]}
            yield "a missing key", less
            yield "another key", {**less, "zz": np.float32(1)}
            yield "keys that cannot be sorted", {**node, 1: np.float32(1)}
    elif type(node) in (list, tuple):
        yield "longer", [*node, np.float32(1)]
        yield "another type", {str(i): x for i, x in enumerate(node)}
        if node:
            yield "shorter", tuple(node[1:])
    elif node is not None:
        yield "another type", tuple(child for _, child, _ in children(node))


def name_of(path):
    return f"oracle{keystr(path)}"
