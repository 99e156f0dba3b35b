"""call: a host function with a result that has to be exactly what was promised."""

import collections

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import host_callback as hcb

WAYS = {"eager": lambda f: f, "jit": jax.jit}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
STRUCT = jax.ShapeDtypeStruct


@ways
def test_result_goes_on_into_the_program(way):
    f = way(lambda x: hcb.call(np.sin, x, result_shape=x) ** 2 + 1)
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(f(x), np.sin(x) ** 2 + 1, rtol=1e-6)


def test_word_of_tutorials_is_accepted():
    assert hcb.call(lambda x: x + x, 2.0, result_shape_dtypes=STRUCT((), np.float32)) == 4.0
    with pytest.raises(TypeError, match="which mean the same"):
        hcb.call(np.sin, 1.0, result_shape=1.0, result_shape_dtypes=1.0)


@ways
def test_host_gets_the_tree_alone(way):
    got = []

    def host(*args, **kwargs):
        got.append((args, kwargs))

    assert way(lambda x: hcb.call(host, {"x": [x, (1,)], "n": None}))(2.0) is None
    hcb.barrier_wait()
    (((arg,), kwargs),) = got
    assert kwargs == {}
    assert jax.tree.map(float, arg) == {"x": [2.0, (1.0,)], "n": None}
    assert {type(x) for x in jax.tree.leaves(arg)} == {np.ndarray}


@ways
def test_array_the_host_returned_stays_its_own(way):
    memory = np.zeros(1000 + 16, np.float32)
    start = -memory.ctypes.data % 64 // 4  # JAX takes such memory over as it is
    own = memory[start : start + 1000]

    def count(x):
        own[:] += 1
        return own

    f = way(lambda x: hcb.call(count, x, result_shape=STRUCT((1000,), np.float32)))
    first, second = f(0.0), f(0.0)
    np.testing.assert_array_equal([first[0], second[999]], [1.0, 2.0])


Pair = collections.namedtuple("Pair", "a b")


@ways
def test_any_structure_may_come_back(way):
    shape = {"b": Pair(1, STRUCT((2,), jnp.bfloat16)), "a": [jnp.ones(3), None, ()], "c": True}
    returned_value = {
        "b": Pair(np.int32(5), np.ones(2, ml_dtypes.bfloat16)),
        "a": [np.arange(3, dtype=np.float32), None, ()],
        "c": np.True_,
    }
    back = way(lambda: hcb.call(lambda _: returned_value, (), result_shape=shape))()
    assert jax.tree.structure(back) == jax.tree.structure(shape)
    assert back["b"].b.dtype == jnp.bfloat16
    assert jax.tree.map(lambda x: np.asarray(x).tolist(), back) == {
        "b": Pair(5, [1, 1]), "a": [[0, 1, 2], None, ()], "c": True,
    }  # fmt: skip


@pytest.mark.parametrize(
    "leaf",
    ["text", object(), [1, "x"], STRUCT, np.array("a"), np.datetime64("2020"), jax.random.key(0)],
)
def test_promise_without_shape_and_dtype_is_refused(leaf):
    with pytest.raises(ValueError, match=r"in result_shape\. The values must"):
        hcb.call(np.sin, 1.0, result_shape=leaf)


def test_leaf_that_is_no_array_is_refused():
    with pytest.raises(TypeError, match="call takes arrays and numbers, but got 'text'"):
        hcb.call(np.sin, "text", result_shape=1.0)
    with pytest.raises(TypeError, match="call needs a function as its first argument, not 3"):
        hcb.call(3, 1.0)
    with pytest.raises(TypeError, match="unexpected keyword"):
        hcb.call(np.sin, 1.0, result=1.0)


@ways
@pytest.mark.parametrize(
    ("promised", "narrow", "returned_value"),
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
def test_64_bit_is_narrowed_without_x64(way, promised, narrow, returned_value):
    back = way(lambda: hcb.call(lambda _: returned_value, (), result_shape=STRUCT((), promised)))()
    assert back.dtype.name == narrow
    np.testing.assert_allclose(back, returned_value, rtol=1e-6)


@ways
def test_64_bit_that_does_not_fit_is_infinite_as_it_was_or_an_error(way):
    f = way(lambda: hcb.call(lambda _: 1e300, (), result_shape=1.0))
    assert float(f()) == np.inf
    g = way(lambda: hcb.call(lambda _: 2**40, (), result_shape=1))
    with pytest.raises(RuntimeError, match=r"1099511627776 .* does not fit int32"):
        jax.block_until_ready(g())


@ways
def test_nothing_is_narrowed_with_x64(way):
    with jax.enable_x64(True):
        f = way(lambda: hcb.call(lambda _: 0.1, (), result_shape=STRUCT((), np.float64)))
        assert float(f()) == 0.1
        g = way(lambda: hcb.call(lambda _: 0.1, (), result_shape=STRUCT((), np.float32)))
        with pytest.raises(RuntimeError, match="float64"):
            jax.block_until_ready(g())


def test_integer_that_would_wrap_around_is_an_error():
    with pytest.raises(RuntimeError, match=str(2**40)):
        hcb.call(lambda _: 2**40, (), result_shape=1)


WRONG = {
    "list for a tuple": ((1.0, 2.0), [1.0, 2.0]),
    "tuple for a list": ([1.0], (1.0,)),
    "None for an array": (1.0, None),
    "None for nothing in a tuple": ((), None),
    "an array where nothing was promised": (None, 1.0),
    "() where None was promised": (None, ()),
    "other keys": ({"a": 1.0}, {"b": 1.0}),
    "one more": ((1.0,), (1.0, 2.0)),
    "an integer for a float": (1.0, 1),
    "a float for an integer": (1, 1.0),
    "a boolean for an integer": (1, True),
    "half the width": (1.0, np.float16(1)),
    "a scalar for an array": (np.ones(3, np.float32), 1.0),
    "an array for a scalar": (1.0, np.ones(1, np.float32)),
    "another shape": (np.ones((2, 1), np.float32), np.ones((1, 2), np.float32)),
    "text": (1.0, "text"),
}


@ways
@pytest.mark.parametrize(("promised", "returned_value"), WRONG.values(), ids=WRONG)
def test_result_that_is_not_exactly_as_promised_is_an_error(way, promised, returned_value):
    def wrong(_):
        return returned_value

    with pytest.raises(RuntimeError, match="wrong returned") as caught:
        jax.block_until_ready(way(lambda: hcb.call(wrong, (), result_shape=promised))())
        jax.effects_barrier()
    assert isinstance(jaxcb.host_error(caught.value), ValueError)


def test_result_may_be_a_jax_array():
    returned_value = jnp.arange(3.0)
    assert hcb.call(lambda _: returned_value, (), result_shape=returned_value).tolist() == [0, 1, 2]


@ways
def test_result_is_not_weakly_typed(way):
    product = way(lambda x: x * hcb.call(lambda _: 2.0, (), result_shape=1.0))(jnp.bfloat16(3))
    assert product.dtype.name == "float32"


@ways
def test_empty_arguments_and_results(way):
    calls = []

    def host(x):
        calls.append(x.shape)
        return x

    back = way(lambda x: hcb.call(host, x, result_shape=x))(jnp.zeros((0, 3)))
    assert (back.shape, calls) == ((0, 3), [(0, 3)])


def test_control_flow():
    double = lambda x: hcb.call(lambda x: 2 * x, x, result_shape=x)  # noqa: E731
    assert lax.fori_loop(0, 3, lambda _, x: double(x), 1.0) == 8.0
    assert lax.scan(lambda c, _: (double(c), c), 1.0, None, 3)[1].tolist() == [1, 2, 4]
    assert lax.while_loop(lambda x: double(x) < 10, lambda x: x + 1, 1.0) == 5.0
    assert lax.map(double, jnp.arange(3)).tolist() == [0, 2, 4]
    assert jax.jit(lambda p: lax.cond(p, double, lambda x: x, 3.0))(True) == 6.0


def no_call(x):
    raise AssertionError("the host is not to be called")


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


def test_transformations_that_do_not_reach_it_are_fine():
    cos = lambda x: hcb.call(np.cos, x, result_shape=1.0)  # noqa: E731
    assert jax.vmap(lambda x: x + cos(0.0))(jnp.arange(2.0)).tolist() == [1, 2]
    assert jax.grad(lambda x: x * cos(0.0))(3.0) == 1.0
    np.testing.assert_allclose(
        jax.grad(lambda x: x * cos(lax.stop_gradient(x)))(3.0), np.cos(3.0), rtol=1e-6
    )
    of_integer = lambda x, n: x * hcb.call(lambda n: n, n, result_shape=n)  # noqa: E731
    assert jax.grad(of_integer)(3.0, 4) == 4.0


def test_recipe_for_a_derivative():
    @jax.custom_vjp
    def sin(x):
        return hcb.call(np.sin, x, result_shape=x)

    sin.defvjp(lambda x: (sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    np.testing.assert_allclose(jax.jit(jax.grad(sin))(0.5), np.cos(0.5), rtol=1e-6)
