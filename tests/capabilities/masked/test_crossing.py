"""A masked call returns what NumPy selects, and calls the host function where the mask is true."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import VMAP_METHODS, AxisKind
from tests._vmap_methods import LOOPED, TOGETHER

from ._nests import OTHER, expected, facts, mapped, nests, weigh


@pytest.mark.long
@pytest.mark.parametrize("jitted", [False, True])
@settings(max_examples=40)
@given(nests(), st.sampled_from(LOOPED), st.sampled_from(["pure", "io", "buffer"]))
def test_looped_vmaps_call_exactly_the_needed_elements(jitted, nest, method, flavor):
    sizes, maps, arrays = nest
    method = LOOPED[0] if flavor == "io" else method
    made = []

    def host(x, y):
        made.append((facts(x), facts(y)))
        return weigh(x, y)

    f = registered(host, flavor, method)
    call = mapped(lambda mask, x, y: f.where(mask, x, y, otherwise=OTHER), maps)
    wanted, calls = expected(sizes, maps, arrays, weigh)
    with jaxcb.record() as r:
        found = (jax.jit(call) if jitted else call)(*arrays)
        jax.effects_barrier()
    assert facts(np.asarray(found)) == facts(wanted)
    if 0 in wanted.shape and flavor != "io":
        return  # JAX removes pure calls whose results are empty
    assert sorted(made) == sorted((facts(x), facts(y)) for x, y in calls)
    if 0 not in sizes:
        (mask,) = r.recording.masks
        assert (mask.elements, mask.needed) == (int(np.prod(sizes)), len(calls))


def registered(host, flavor, method):
    """Register a function whose result is like its first argument."""
    if flavor != "buffer":
        return getattr(jaxcb, flavor)(host, result="x", vmap_method=method)

    def write(out, x, *args):
        out[...] = host(x, *args)

    return jaxcb.buffer(write, result="x", vmap_method=method)


@pytest.mark.long
@pytest.mark.parametrize("jitted", [False, True])
@settings(max_examples=60)
@given(nests(), st.sampled_from(TOGETHER), st.sampled_from(["pure", "buffer"]))
def test_other_vmap_methods_make_one_call_with_the_needed_elements(jitted, nest, method, flavor):
    sizes, maps, arrays = nest
    made = []
    inner = [x.ndim - sum(on[n] == "1" for on in maps) for n, x in enumerate(arrays)]

    def host(x, y):
        """As `weigh`, for arguments with or without a batch axis."""
        made.append((np.copy(x), np.copy(y)))
        total = y.sum(tuple(range(y.ndim - inner[2], y.ndim)), dtype=x.dtype)
        return (x + total.reshape((*total.shape, *[1] * inner[1]))).astype(x.dtype)

    f = registered(host, flavor, method)
    call = mapped(lambda mask, x, y: f.where(mask, x, y, otherwise=OTHER), maps)
    wanted, calls = expected(sizes, maps, arrays, weigh)
    found = (jax.jit(call) if jitted else call)(*arrays)
    assert facts(np.asarray(found)) == facts(wanted)
    if 0 in wanted.shape:
        return  # JAX removes pure calls whose results are empty
    assert len(made) == bool(calls)
    unbatched = VMAP_METHODS[method].unbatched
    for given_arguments in made if maps else ():
        for place, (got, own) in enumerate(
            zip(given_arguments, zip(*calls, strict=True), strict=True)
        ):
            if unbatched is AxisKind.TILED or any(on[place + 1] == "1" for on in maps):
                np.testing.assert_array_equal(got, np.stack(own))
            elif unbatched is AxisKind.SIZE1:
                np.testing.assert_array_equal(got, own[0][None])
            else:
                np.testing.assert_array_equal(got, own[0])


def test_an_unbatched_call_is_made_once_or_not_at_all():
    made = []
    f = jaxcb.io(lambda x: (made.append(float(x)), 2 * x)[1], result="x")
    call = jax.jit(lambda mask, x: f.where(mask, x, otherwise=0.5))
    assert [float(call(mask, 3.0)) for mask in (True, False, True)] == [6, 0.5, 6]
    assert made == [3.0, 3.0]


def test_pytrees_keywords_and_static_arguments_reach_the_host_function():
    seen = []

    def host(tree, kind, *, scale):
        seen.append((kind, float(scale), sorted(tree)))
        return {"a": tree["x"] * scale, "b": tree["n"]}

    f = jaxcb.pure(host, result=lambda tree, kind, scale: {"a": tree["x"], "b": tree["n"]})
    x, n = jnp.arange(3.0), jnp.arange(3)

    def call(x, n):
        tree, others = {"x": x, "n": n}, {"a": jnp.nan, "b": -1}
        return f.where(n != 1, tree, "mean", scale=2.0, otherwise=others)

    found = jax.jit(jax.vmap(call))(x, n)
    np.testing.assert_array_equal(found["a"], [0, np.nan, 4])
    np.testing.assert_array_equal(found["b"], [0, -1, 2])
    assert seen == [("mean", 2.0, ["n", "x"])] * 2


def test_failing_element_is_named_and_later_runs_work():
    made = []

    def host(x):
        made.append(int(x))
        if x == 3:
            raise ValueError("no luck")
        return x

    f = jaxcb.io(host, result="x")
    call = jax.jit(jax.vmap(lambda x, bad: f.where(x != 1, x + bad, otherwise=0)))
    with jaxcb.record() as r, pytest.raises(jax.errors.JaxRuntimeError) as raised:
        call(jnp.arange(5), jnp.zeros(5, jnp.int32))
    assert str(jaxcb.host_error(raised.value)) == "no luck"
    assert made == [0, 2, 3]
    assert [(c.element, c.error) for c in r.recording] == [
        (0, None), (2, None), (3, "ValueError: no luck")
    ]  # fmt: skip
    np.testing.assert_array_equal(
        call(jnp.array([0, 1, 2, 4, 5]), jnp.zeros(5, int)), [0, 0, 2, 4, 5]
    )


def test_masks_work_in_loops_and_branches():
    made = []
    f = jaxcb.io(lambda i, x: (made.append((int(i), float(x))), x + 1)[1], result="x")

    def step(i, x):
        even = f.where(i % 2 == 0, i, x, otherwise=x)
        return jax.lax.cond(
            i == 2, lambda x: f.where(x > 100, i, x, otherwise=x), lambda x: x, even
        )

    found = jax.jit(lambda x: jax.lax.fori_loop(0, 4, step, x))(0.0)
    assert (float(found), made) == (2.0, [(0, 0.0), (2, 1.0)])


def test_ordered_and_debug_calls_are_made_where_the_mask_is_true():
    seen = []
    log = jaxcb.debug(lambda kind, x: seen.append((kind, int(x))), ordered=True)
    save = jaxcb.io(lambda x: seen.append(("saved", int(x))), result=None, ordered=True)

    @jax.jit
    def program(x):
        def body(i, x):
            log.where(i % 2 == 0, "even", i)
            save.where(i == 3, i)
            return x

        return jax.lax.fori_loop(0, 5, body, x)

    program(0)
    jax.effects_barrier()
    assert [n for kind, n in seen if kind == "even"] == [0, 2, 4]
    assert [n for kind, n in seen if kind == "saved"] == [3]


@pytest.mark.parametrize(
    ("method", "shape"),
    [("expand_dims", (1, 2)), ("broadcast_all", (3, 2)), ("legacy_vectorized", (2,))],
)
def test_arguments_beside_a_batched_mask_arrive_as_the_method_says(method, shape):
    shapes = []

    @jaxcb.pure(result="x", vmap_method=method)
    def double(x):
        shapes.append(x.shape)
        return 2 * x

    mask, x = np.array([True, False, True, True, False]), np.float32([3, 4])
    y = jax.vmap(lambda each: double.where(each, x, otherwise=0.0))(mask)
    np.testing.assert_array_equal(y, np.where(mask[:, None], 2 * x, 0))
    assert shapes == [shape]
