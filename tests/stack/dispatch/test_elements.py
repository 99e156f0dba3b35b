"""The loop over batch elements returns what NumPy returns for stacked single calls."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS, Aval, LoweredSite, Site, VmapLevel
from jupyter_jaxcb.stack.dispatch._elements import ElementSchedule

SITE = Site("pure", "f", "m.py", 1, 0, cell=False)


@st.composite
def nests(draw):
    """Draw sizes of nested vmaps, innermost first, and which of two operands each maps over."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
    first = [draw(st.booleans()) for _ in sizes]
    second = [draw(st.booleans()) or not a for a in first]
    return sizes, list(zip(first, second, strict=True))


@settings(max_examples=60)
@given(nests())
def test_elements_are_called_in_the_order_of_jax(nest):
    sizes, batched = nest
    inner = [(), (2,)]
    operands = []
    for operand in range(2):
        own = [n for n, on in zip(sizes, batched, strict=True) if on[operand]][::-1]
        shape = (*own, *inner[operand])
        operands.append(np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape))
    levels = tuple(
        VmapLevel(n, VMAP_METHODS["sequential"], on) for n, on in zip(sizes, batched, strict=True)
    )
    avals = tuple(Aval(x.shape, "float32") for x in operands)
    schedule = ElementSchedule(LoweredSite(SITE, None, -1, avals, (), levels))
    grid = sizes[::-1]
    # JAX's order: the index of the outermost axis varies fastest, that of the innermost vmap
    # slowest.
    expected = sorted(np.ndindex(*grid), key=lambda index: index[::-1])
    assert schedule.order.tolist() == [int(np.ravel_multi_index(i, grid)) for i in expected]
    elements = list(schedule.elements(operands))
    assert len(elements) == len(expected)
    for index, arguments in zip(expected, elements, strict=True):
        for operand, argument in enumerate(arguments):
            own = tuple(i for i, on in zip(index, batched[::-1], strict=True) if on[operand])
            assert type(argument) is np.ndarray
            assert argument.shape == inner[operand]
            assert not argument.flags.writeable or operands[operand].flags.writeable
            np.testing.assert_array_equal(argument, operands[operand][own])


RESULTS = {
    "scalar": (lambda x: 2 * x, ()),
    "array of no dimension": (lambda x: np.asarray(2 * x), ()),
    "float64": (lambda x: np.float64(2) * x, ()),
    "python float": (lambda x: 2.0 * float(x), ()),
    "vector": (lambda x: np.array([x, 2 * x]), (2,)),
    "strided": (lambda x: np.arange(6, dtype=np.float32)[::2] * x, (3,)),
    "fortran": (lambda x: np.asfortranarray(np.outer([1, 2], [x, x, x])), (2, 3)),
    "a view of the operand": (lambda x: x, ()),
    "empty": (lambda x: np.zeros((0, 3), np.float32), (0, 3)),
}


@pytest.mark.parametrize("returned_value", RESULTS)
@pytest.mark.parametrize("recorded", [False, True], ids=["unrecorded", "recorded"])
def test_results_are_stacked_as_numpy_stacks_them(returned_value, recorded):
    host, shape = RESULTS[returned_value]
    xs = np.arange(5, dtype=np.float32)
    struct = jax.ShapeDtypeStruct(shape, np.float32)
    f = jax.jit(jax.vmap(lambda x: jaxcb.pure_callback(host, struct, x, vmap_method="sequential")))
    if recorded:
        with jaxcb.record() as r:
            result = f(xs)
        assert len(r.recording) == (
            5 if np.prod(shape) else 0
        )  # an empty result: XLA makes no call
    else:
        result = f(xs)
    expected = np.stack([np.asarray(host(x), np.float32) for x in xs])
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shape", [(), (3,)])
@pytest.mark.parametrize("call", ["pure", "io"])
def test_host_function_may_return_the_same_buffer_every_time(shape, call):
    buffer = np.zeros(shape, np.float32)
    struct = jax.ShapeDtypeStruct(shape, np.float32)

    def host(x):
        np.multiply(x, 2, out=buffer)
        return buffer

    def bind(x):
        if call == "pure":
            return jaxcb.pure_callback(host, struct, x, vmap_method="sequential")
        return jaxcb.io_callback(host, struct, x)

    xs = np.arange(4 * max(1, buffer.size), dtype=np.float32).reshape(4, *shape)
    for f in (jax.vmap(bind), jax.jit(jax.vmap(bind))):
        np.testing.assert_array_equal(f(xs), 2 * xs)


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_vmap_over_no_elements_makes_no_calls(transform):
    """Not even the unbatched callback is called, since only the batch elements use its result."""
    seen = []
    scalar = jax.ShapeDtypeStruct((), np.float32)

    def host(x):
        seen.append(x)
        return x

    def f(x, y):
        z = jaxcb.pure_callback(host, scalar, x)
        return jaxcb.io_callback(lambda z, y: seen.append(z) or y, scalar, z, y)

    with jaxcb.record() as r:
        run = jax.jit(lambda x, y: transform(jax.vmap(f, in_axes=(None, 0)))(x, y))
        result = run(np.float32(1), np.zeros(0, np.float32))
    assert result.shape == (0,)
    assert seen == []
    assert len(r.recording) == 0
