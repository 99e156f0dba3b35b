"""Results of buffer callbacks, compared with those of JAX's own callback and of NumPy."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jax.experimental.buffer_callback import ExecutionStage, buffer_callback

import jupyter_jaxcb as jaxcb
from tests.interface import VMAP_METHODS

DTYPES = (
    np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.float16, np.float32,
    np.complex64, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
)  # fmt: skip


def add(context, out, x, y):
    # Written for JAX's buffers: the arguments may be any array-likes.
    np.asarray(out)[...] = np.asarray(x) + np.asarray(y)


@pytest.mark.long
@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 0, 3), (2, 3, 4)])
def test_every_dtype_and_shape_passes_unchanged(around, dtype, shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)

    def copy(context, out, x):
        assert (x.dtype, x.shape, out.dtype, out.shape) == (dtype, shape, dtype, shape)
        out[...] = x

    found = around(jaxcb.buffer_callback(copy, x))(x)
    assert np.asarray(found).tobytes() == x.tobytes()


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_context_on_a_cpu_refuses_a_stream_in_jaxs_words(around):
    def host(context, out, x):
        stages.append(context.stage)
        try:
            messages.append(context.stream)
        except jax.errors.JaxRuntimeError as error:
            messages.append(str(error))
        np.asarray(out)[...] = 0

    stages, messages = [], []
    for callback in (buffer_callback, jaxcb.buffer_callback):
        jax.block_until_ready(around(callback(host, np.float32(0)))(np.float32(0)))
    assert stages == [ExecutionStage.EXECUTE] * 2
    theirs, mine = messages
    assert "XLA FFI GPU context is not available" in theirs
    assert mine.startswith(theirs)


@pytest.mark.parametrize(
    ("dtype", "wider"),
    [("int4", "int8"), ("uint4", "int8"), ("int2", "int8"), ("float4_e2m1fn", "float16")],
)
def test_numbers_of_less_than_a_byte_are_refused_and_a_dtype_that_holds_them_is_named(dtype, wider):
    # NumPy has one of them per byte: 4 bytes for 4 of them, but XLA's memory has 2.
    x = jnp.zeros(4, dtype)
    said = f"cannot pass {dtype} to the buffer callback <lambda>.* Convert to {wider}, or"
    with pytest.raises(TypeError, match=said):
        jaxcb.buffer_callback(lambda context, out, x: None, x)(x)


@st.composite
def _maps(draw):
    """Draw shapes of two arguments that broadcast, and in_axes of one to three vmaps over them."""
    inner = draw(st.sampled_from([(), (2,), (2, 3)]))
    shapes, axes = [list(inner), list(inner)], []
    for _ in range(draw(st.integers(1, 3))):
        size = draw(st.integers(0, 3))
        batched = draw(st.sampled_from([(True, True), (True, False), (False, True)]))
        places = []
        for shape, on in zip(shapes, batched, strict=True):
            place = draw(st.integers(0, len(shape))) if on else None
            if place is not None:
                shape.insert(place, size)
            places.append(place)
        axes.append(tuple(places))
    return inner, shapes, axes


@pytest.mark.long
@settings(max_examples=40)
@given(_maps(), st.sampled_from(list(VMAP_METHODS)), st.booleans())
def test_vmap_returns_what_jax_returns(maps, method, compiled):
    inner, shapes, axes = maps
    # With nested vmaps, the host function cannot know which leading axes an argument lacks.
    assume(not VMAP_METHODS[method].hides_axes or len(axes) == 1)
    x, y = (np.arange(np.prod(s, dtype=int), dtype=np.int32).reshape(s) for s in shapes)
    host = add if VMAP_METHODS[method].looped else _add_leading
    found = []
    for callback in (jaxcb.buffer_callback, buffer_callback):
        call = callback(host, jax.ShapeDtypeStruct(inner, np.int32), vmap_method=method)
        for places in axes:
            call = jax.vmap(call, places)
        found.append(jax.jit(call)(x, y) if compiled else call(x, y))
    assert found[0].shape == found[1].shape
    assert found[0].tolist() == found[1].tolist()


def _add_leading(context, out, x, y):
    """As `add`, but one argument may lack leading axes that the other has."""
    out, x, y = map(np.asarray, (out, x, y))
    x, y = (a.reshape((1,) * (out.ndim - a.ndim) + a.shape) for a in (x, y))
    out[...] = x + y


def test_sequential_vmap_calls_each_element_with_a_scalar_output(x):
    seen = []

    def host(context, out, x, y):
        assert out.flags.writeable
        seen.append((out.shape, x.tolist(), y.tolist()))
        out[...] = x * 10 + y

    call = jaxcb.buffer_callback(
        host, jax.ShapeDtypeStruct((), np.float32), vmap_method="sequential"
    )
    found = jax.jit(jax.vmap(jax.vmap(call, (0, None)), (0, None)))(x, jnp.float32(1))
    assert found.tolist() == (np.asarray(x) * 10 + 1).tolist()
    assert seen == [((), value, 1.0) for value in (0.0, 3.0, 1.0, 4.0, 2.0, 5.0)]


def test_vmap_without_a_method_names_the_choices(x):
    call = jaxcb.buffer_callback(add, jnp.zeros(3))
    with pytest.raises(
        NotImplementedError, match=r"cannot vmap add@.* 'expand_dims', .*'sequential' is correct"
    ):
        jax.vmap(call)(x, x)


def test_derivative_rules_differentiate_buffer_callbacks(x):
    @jaxcb.buffer(result="x")
    def sine(out, x):
        np.sin(x, out=out)

    with pytest.raises(ValueError, match=r"Buffer callbacks do not support JVP.*@sine\.defjvp"):
        jax.jvp(sine, (x,), (x,))

    @sine.defjvp
    def rule(primals, tangents):
        return sine(*primals), jnp.cos(*primals) * tangents[0]

    assert np.allclose(jax.jacrev(jax.jit(sine))(x[0]), np.diag(np.cos(np.arange(3))), atol=1e-6)
    assert np.allclose(jax.vmap(jax.grad(sine))(x[0]), np.cos(np.arange(3)), atol=1e-6)
    twice = jaxcb.buffer(lambda out, x: np.copyto(out, 2 * x), result="x")
    twice.defvjp(lambda x: (twice(x), x), lambda x, ct: (ct * 3,))
    assert jax.grad(lambda x: twice(x).sum())(x).tolist() == np.full((2, 3), 3.0).tolist()


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("method", [None, *VMAP_METHODS])
@pytest.mark.parametrize("shape", [(), (3,)], ids=str)
def test_host_function_gets_what_jax_hands_over(around, method, shape):
    seen = []

    def host(context, out, x):
        seen.append([(b.writeable, b.shape, b.ndim, b.dtype.name) for b in (out, x)])
        seen.append([np.from_dlpack(b).shape for b in (out, x)])
        np.asarray(out)[...] = np.asarray(x)

    def calls(make):
        seen.clear()
        call = make(host, jax.ShapeDtypeStruct(shape, jnp.float32), vmap_method=method)
        over = call if method is None else jax.vmap(call)
        x = np.ones(shape if method is None else (2, *shape), np.float32)
        jax.block_until_ready(around(over)(x))
        return list(seen)

    assert calls(jaxcb.buffer_callback) == calls(buffer_callback)
