"""Draw nested vmaps around a masked call, and compute by NumPy what they return."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

OTHER = 7
DTYPES = ("float32", "int32", "complex64", "bfloat16", "uint8")


@st.composite
def nests(draw, dtypes=DTYPES, shapes=((), (2,), (3, 1), (0,))):
    """Draw nested vmaps over a mask and two arguments, and the arrays; outermost vmap first."""
    sizes = draw(st.lists(st.integers(0, 4) | st.integers(1, 4), min_size=0, max_size=3))
    maps = [draw(st.sampled_from([f"{n:03b}" for n in range(1, 8)])) for _ in sizes]
    inner = [(), draw(st.sampled_from(shapes)), draw(st.sampled_from([(), (2,)]))]
    random = np.random.default_rng(draw(st.integers(0, 99)))
    dtype = jnp.dtype(draw(st.sampled_from(dtypes)))
    arrays = []
    for place, own in enumerate(inner):
        batch = [n for n, on in zip(sizes, maps, strict=True) if on[place] == "1"]
        numbers = random.integers(0, 2 if place == 0 else 5, (*batch, *own))
        arrays.append(numbers.astype(bool if place == 0 else dtype))
    return sizes, maps, arrays


def mapped(function, maps):
    for on in reversed(maps):
        function = jax.vmap(function, in_axes=tuple(0 if one == "1" else None for one in on))
    return function


def expected(sizes, maps, arrays, f):
    """Return the result by NumPy, and the arguments of each needed element in row-major order."""
    ranks = [x.ndim - sum(on[place] == "1" for on in maps) for place, x in enumerate(arrays)]
    whole = []
    for place, (x, rank) in enumerate(zip(arrays, ranks, strict=True)):
        own = [n if on[place] == "1" else 1 for n, on in zip(sizes, maps, strict=True)]
        inner = x.shape[x.ndim - rank :]
        whole.append(np.broadcast_to(x.reshape((*own, *inner)), (*sizes, *inner)))
    mask, *given = whole
    out = np.full(given[0].shape, OTHER, given[0].dtype)
    calls = []
    for index in np.ndindex(*sizes):
        if mask[index]:
            calls.append(tuple(x[index] for x in given))
            out[index] = f(*calls[-1])
    return out, calls


def weigh(x, y):
    return (x + y.sum(dtype=x.dtype)).astype(x.dtype)


def facts(x):
    return x.shape, x.dtype.name, np.asarray(x).tobytes()
