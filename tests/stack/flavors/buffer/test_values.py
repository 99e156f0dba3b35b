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


@jaxcb.buffer(result="x")
def double(out, x):
    np.multiply(x, 2, out=out)


def add(context, out, x, y):
    # Written for JAX's buffers: the arguments may be any array-likes.
    np.asarray(out)[...] = np.asarray(x) + np.asarray(y)


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


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_64_bit_numbers_pass_unchanged_with_x64(around):
    with jax.enable_x64(True):
        x = jnp.array([2**40 + 7, -(2**50)])
        copied = around(jaxcb.buffer_callback(lambda context, out, x: np.copyto(out, x), x))(x)
        assert copied.tolist() == [2**40 + 7, -(2**50)]


def test_64_bit_result_without_x64_is_refused_before_any_call():
    seen = []
    call = jaxcb.buffer_callback(
        lambda context, out: seen.append(1), jax.ShapeDtypeStruct((), np.float64)
    )
    with pytest.raises(ValueError, match="cannot return float64 while jax_enable_x64 is off"):
        call()
    assert seen == []


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


def test_keys_are_refused():
    key = jax.random.key(0)
    with pytest.raises(TypeError, match=r"cannot pass key<fry> .* jax\.random\.key_data"):
        jaxcb.buffer_callback(lambda context, out, x: None, jnp.zeros(2))(key)


@pytest.mark.parametrize("around", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_pytrees_keywords_and_static_arguments_keep_their_structure(around):
    seen = []

    def host(context, out, tree, *, mode, shift):
        seen.append((sorted(tree), mode, shift.shape, type(out), sorted(out)))
        out["sum"][...] = tree["a"] + tree["b"][0] + shift
        out["rest"][0][...] = 7

    call = jaxcb.buffer_callback(
        host, {"sum": jnp.zeros(3), "rest": [jax.ShapeDtypeStruct((), np.int32)]}
    )
    tree = {"a": jnp.arange(3.0), "b": [jnp.ones(3)]}
    found = around(lambda tree, shift: call(tree, mode="fast", shift=shift))(tree, jnp.ones(3))
    assert found["sum"].tolist() == [2.0, 3.0, 4.0]
    assert found["rest"][0].tolist() == 7
    assert seen == [(["a", "b"], "fast", (3,), dict, ["rest", "sum"])]


def test_callback_without_results_gets_an_empty_output():
    seen = []
    call = jaxcb.buffer_callback(
        lambda context, out, x: seen.append((out, x.tolist())), (), has_side_effect=True
    )
    assert jax.jit(call)(jnp.arange(2)) == ()
    assert call(jnp.arange(2)) == ()
    assert seen == [((), [0, 1])] * 2


def test_loops_and_branches_compute_what_numpy_computes(x):
    host = np.asarray(x)
    scanned = jax.lax.scan(lambda c, _: (double(c), double(c)), x, None, length=3)
    assert scanned[0].tolist() == (host * 8).tolist()
    assert scanned[1].tolist() == [(host * n).tolist() for n in (2, 4, 8)]
    assert jax.lax.map(double, x).tolist() == (host * 2).tolist()
    looped = jax.jit(lambda x: jax.lax.while_loop(lambda x: x[1, 2] < 30, double, x))(x)
    assert looped.tolist() == (host * 8).tolist()
    chosen = jax.jit(lambda x: jax.lax.cond(x[0, 0] < 0, lambda x: x, double, x))(x)
    assert chosen.tolist() == (host * 2).tolist()


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


def test_vmap_over_no_elements_makes_no_calls():
    seen = []
    call = jaxcb.buffer_callback(
        lambda context, out, x: seen.append(1), jax.ShapeDtypeStruct((), np.float32),
        vmap_method="sequential",
    )  # fmt: skip
    assert jax.jit(jax.vmap(call))(jnp.zeros(0)).shape == (0,)
    assert jax.vmap(call)(jnp.zeros(0)).shape == (0,)
    assert seen == []


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


def test_derivative_rule_gets_keyword_and_default_arguments(x):
    @jaxcb.buffer(result="x")
    def scale(out, x, factor=3.0):
        np.multiply(x, factor, out=out)

    scale.defvjp(
        lambda x, factor: (scale(x, factor), factor), lambda factor, ct: (ct * factor, None)
    )
    assert jax.grad(lambda x: scale(x).sum())(x).tolist() == np.full((2, 3), 3.0).tolist()
    assert jax.grad(lambda x: scale(x=x, factor=2.0).sum())(x)[0, 0] == 2.0


def test_annotation_of_the_output_declares_the_result(x):
    from jaxtyping import Array, Float

    @jaxcb.buffer
    def differences(
        out: Float[Array, "r n-1"],  # noqa: F722
        x: Float[Array, "r n"],  # noqa: F722
    ) -> None:
        np.subtract(x[:, 1:], x[:, :-1], out=out)

    assert jax.jit(differences)(x).tolist() == [[1.0, 1.0]] * 2


def test_rerun_cell_replaces_the_function_in_compiled_programs(notebook, x):
    cell = "@jaxcb.buffer(result='x')\ndef times(out, x):\n    out[...] = x * {}"
    notebook.run(cell.format(2), "a cell")
    compiled = jax.jit(notebook.names["times"])
    assert compiled(x)[0, 1] == 2.0
    notebook.run(cell.format(5), "a cell")
    assert compiled(x)[0, 1] == 5.0


def test_signature_is_that_of_the_calls_in_jax_code():
    import inspect

    assert str(inspect.signature(double)) == "(x)"
    assert repr(double) == "<buffer callback double>"


def test_equal_calls_are_compiled_once(x, compiles):
    call = jaxcb.buffer_callback(add, x, vmap_method="sequential")
    jitted = jax.jit(lambda x: (call(x, x), call(x, x)))
    jitted(x)
    with compiles() as counted:
        jitted(x + 0)
        jax.jit(jitted)
    assert counted.count <= 1  # x + 0


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


def test_decorated_host_function_gets_plain_arrays():
    kinds = []

    @jaxcb.buffer(result="x", vmap_method="sequential")
    def host(out, x):
        kinds.append({type(out), type(x)})
        out[...] = x

    x = np.ones((2, 3), np.float32)
    for run in (host, jax.jit(host), jax.vmap(host), jax.jit(jax.vmap(host))):
        jax.block_until_ready(run(x))
    assert kinds == [{np.ndarray}] * 6
