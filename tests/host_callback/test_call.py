"""`call`: the result of the host function must have exactly the declared structure and avals."""

import collections

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb

MODES = {"eager": lambda f: f, "jit": jax.jit}
eager_and_jit = pytest.mark.parametrize("around", MODES.values(), ids=MODES)
STRUCT = jax.ShapeDtypeStruct


@eager_and_jit
def test_program_uses_the_result(around):
    f = around(lambda x: hcb.call(np.sin, x, result_shape=x) ** 2 + 1)
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(f(x), np.sin(x) ** 2 + 1, rtol=1e-6)


def test_keyword_of_old_tutorials_is_accepted():
    assert hcb.call(lambda x: x + x, 2.0, result_shape_dtypes=STRUCT((), np.float32)) == 4.0
    with pytest.raises(TypeError, match="which mean the same"):
        hcb.call(np.sin, 1.0, result_shape=1.0, result_shape_dtypes=1.0)


@eager_and_jit
def test_host_function_gets_only_the_tree(around):
    got = []

    def host(*args, **kwargs):
        got.append((args, kwargs))

    assert around(lambda x: hcb.call(host, {"x": [x, (1,)], "n": None}))(2.0) is None
    hcb.barrier_wait()
    (((arg,), kwargs),) = got
    assert kwargs == {}
    assert jax.tree.map(float, arg) == {"x": [2.0, (1.0,)], "n": None}
    assert {type(x) for x in jax.tree.leaves(arg)} == {np.ndarray}


@eager_and_jit
def test_array_returned_by_the_host_function_is_copied(around):
    memory = np.zeros(1000 + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4  # JAX adopts aligned memory without a copy
    kept = memory[start : start + 1000]

    def count(x):
        kept[:] += 1
        return kept

    f = around(lambda x: hcb.call(count, x, result_shape=STRUCT((1000,), np.float32)))
    first, second = f(0.0), f(0.0)
    np.testing.assert_array_equal([first[0], second[999]], [1.0, 2.0])


Pair = collections.namedtuple("Pair", "a b")


@eager_and_jit
def test_result_may_have_any_structure(around):
    shape = {"b": Pair(1, STRUCT((2,), jnp.bfloat16)), "a": [jnp.ones(3), None, ()], "c": True}
    returned_value = {
        "b": Pair(np.int32(5), np.ones(2, ml_dtypes.bfloat16)),
        "a": [np.arange(3, dtype=np.float32), None, ()],
        "c": np.True_,
    }
    back = around(lambda: hcb.call(lambda _: returned_value, (), result_shape=shape))()
    assert jax.tree.structure(back) == jax.tree.structure(shape)
    assert back["b"].b.dtype == jnp.bfloat16
    assert jax.tree.map(lambda x: np.asarray(x).tolist(), back) == {
        "b": Pair(5, [1, 1]), "a": [[0, 1, 2], None, ()], "c": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "leaf",
    ["text", object(), [1, "x"], STRUCT, np.array("a"), np.datetime64("2020"), jax.random.key(0)],
)
def test_declared_result_without_shape_and_dtype_is_refused(leaf):
    with pytest.raises(ValueError, match=r"in result_shape\. The values must"):
        hcb.call(np.sin, 1.0, result_shape=leaf)


def test_leaf_that_is_not_an_array_is_refused():
    with pytest.raises(TypeError, match="call takes arrays and numbers, but got 'text'"):
        hcb.call(np.sin, "text", result_shape=1.0)
    with pytest.raises(TypeError, match="call needs a function as its first argument, not 3"):
        hcb.call(3, 1.0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        hcb.call(np.sin, 1.0, result=1.0)


@eager_and_jit
@pytest.mark.parametrize(
    ("declared", "narrow", "returned_value"),
    [
        (np.float64, "float32", 0.1),
        (np.int64, "int32", 7),
        (np.float64, "float32", np.float64(0.1)),
        (np.uint64, "uint32", np.uint64(7)),
        (np.complex128, "complex64", 1j),
        (np.float32, "float32", 0.1),
        (np.int32, "int32", np.int64(7)),
        (np.bool_, "bool", True),
    ],
)
def test_64_bit_results_are_narrowed_without_x64(around, declared, narrow, returned_value):
    back = around(
        lambda: hcb.call(lambda _: returned_value, (), result_shape=STRUCT((), declared))
    )()
    assert back.dtype.name == narrow
    np.testing.assert_allclose(back, returned_value, rtol=1e-6)


@eager_and_jit
def test_float_that_does_not_fit_32_bits_is_infinite_and_an_integer_is_an_error(around):
    f = around(lambda: hcb.call(lambda _: 1e300, (), result_shape=1.0))
    assert float(f()) == np.inf
    g = around(lambda: hcb.call(lambda _: 2**40, (), result_shape=1))
    with pytest.raises(RuntimeError, match=r"1099511627776 .* does not fit int32"):
        jax.block_until_ready(g())


@eager_and_jit
def test_nothing_is_narrowed_with_x64(around):
    with jax.enable_x64(True):
        f = around(lambda: hcb.call(lambda _: 0.1, (), result_shape=STRUCT((), np.float64)))
        assert float(f()) == 0.1
        g = around(lambda: hcb.call(lambda _: 0.1, (), result_shape=STRUCT((), np.float32)))
        with pytest.raises(RuntimeError, match="float64"):
            jax.block_until_ready(g())


WRONG = {
    "list for a tuple": ((1.0, 2.0), [1.0, 2.0]),
    "tuple for a list": ([1.0], (1.0,)),
    "None for an array": (1.0, None),
    "None for an empty tuple": ((), None),
    "an array where None was declared": (None, 1.0),
    "() where None was declared": (None, ()),
    "other keys": ({"a": 1.0}, {"b": 1.0}),
    "one leaf too many": ((1.0,), (1.0, 2.0)),
    "an integer for a float": (1.0, 1),
    "a float for an integer": (1, 1.0),
    "a boolean for an integer": (1, True),
    "half precision": (1.0, np.float16(1)),
    "a scalar for an array": (np.ones(3, np.float32), 1.0),
    "an array for a scalar": (1.0, np.ones(1, np.float32)),
    "another shape": (np.ones((2, 1), np.float32), np.ones((1, 2), np.float32)),
    "text": (1.0, "text"),
}


@eager_and_jit
@pytest.mark.parametrize(("declared", "returned_value"), WRONG.values(), ids=WRONG)
def test_result_that_differs_from_the_declaration_is_an_error(around, declared, returned_value):
    def wrong(_):
        return returned_value

    with pytest.raises(RuntimeError, match="wrong returned") as caught:
        jax.block_until_ready(around(lambda: hcb.call(wrong, (), result_shape=declared))())
        jax.effects_barrier()
    assert isinstance(jaxcb.host_error(caught.value), ValueError)


def test_result_may_be_a_jax_array():
    returned_value = jnp.arange(3.0)
    assert hcb.call(lambda _: returned_value, (), result_shape=returned_value).tolist() == [0, 1, 2]


@eager_and_jit
def test_result_is_not_weakly_typed(around):
    product = around(lambda x: x * hcb.call(lambda _: 2.0, (), result_shape=1.0))(jnp.bfloat16(3))
    assert product.dtype.name == "float32"


@eager_and_jit
def test_arrays_without_elements_are_passed_both_ways(around):
    calls = []

    def host(x):
        calls.append(x.shape)
        return x

    back = around(lambda x: hcb.call(host, x, result_shape=x))(jnp.zeros((0, 3)))
    assert (back.shape, calls) == ((0, 3), [(0, 3)])


def test_call_works_in_control_flow():
    double = lambda x: hcb.call(lambda x: 2 * x, x, result_shape=x)  # noqa: E731
    assert lax.fori_loop(0, 3, lambda _, x: double(x), 1.0) == 8.0
    assert lax.scan(lambda c, _: (double(c), c), 1.0, None, 3)[1].tolist() == [1, 2, 4]
    assert lax.while_loop(lambda x: double(x) < 10, lambda x: x + 1, 1.0) == 5.0
    assert lax.map(double, jnp.arange(3)).tolist() == [0, 2, 4]
    assert jax.jit(lambda p: lax.cond(p, double, lambda x: x, 3.0))(True) == 6.0


def no_call(x):
    raise AssertionError("the host function must not be called")


REFUSED = {
    "vmap": (lambda f: jax.vmap(f)(jnp.arange(2.0)), "batching rules"),
    "jvp": (lambda f: jax.jvp(f, (1.0,), (1.0,)), "JVP rule"),
    "grad": (lambda f: jax.grad(f)(1.0), "JVP rule"),
    "jit of grad": (lambda f: jax.jit(jax.grad(f))(1.0), "JVP rule"),
    "linear_transpose": (lambda f: jax.linear_transpose(f, 1.0)(1.0), "transpose rule"),
}


@pytest.mark.parametrize(("use", "rule"), REFUSED.values(), ids=REFUSED)
def test_transformations_are_refused_while_tracing(use, rule):
    with pytest.raises(
        NotImplementedError,
        match=rf"no_call@test_call\.py:\d+: {rule}.*implemented only for id_tap, not for call",
    ):
        use(lambda x: hcb.call(no_call, x, result_shape=x))


def test_transformations_that_do_not_affect_its_arguments_are_allowed():
    cos = lambda x: hcb.call(np.cos, x, result_shape=1.0)  # noqa: E731
    assert jax.vmap(lambda x: x + cos(0.0))(jnp.arange(2.0)).tolist() == [1, 2]
    assert jax.grad(lambda x: x * cos(0.0))(3.0) == 1.0
    np.testing.assert_allclose(
        jax.grad(lambda x: x * cos(lax.stop_gradient(x)))(3.0), np.cos(3.0), rtol=1e-6
    )
    of_integer = lambda x, n: x * hcb.call(lambda n: n, n, result_shape=n)  # noqa: E731
    assert jax.grad(of_integer)(3.0, 4) == 4.0


def test_custom_vjp_makes_a_call_differentiable():
    @jax.custom_vjp
    def sin(x):
        return hcb.call(np.sin, x, result_shape=x)

    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    np.testing.assert_allclose(jax.jit(jax.grad(sin))(0.5), np.cos(0.5), rtol=1e-6)


def test_host_function_gets_the_device_on_request():
    devices = []

    def host(x, *, device):
        devices.append(device)
        return x

    assert hcb.call(host, np.float32(2), result_shape=np.float32(0), call_with_device=True) == 2
    assert devices == jax.local_devices()[:1]
