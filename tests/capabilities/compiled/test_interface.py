"""Compiled functions take the arguments that Python functions take, or an error says which not."""

import enum

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.capabilities.compiled._function import compiled_function
from jupyter_jaxcb.capabilities.compiled._interface import Constant

SCALAR = jax.ShapeDtypeStruct((), np.float32)
X = np.float32([3, 5, 7])


def compiled(function, result=SCALAR, **options):
    return jaxcb.pure(function, result=result, compile="numba", **options)


def options_of(x, how, shift=3.0, flag=None):
    if how == "add":
        return x + shift
    if flag is not None:
        return x * flag
    return x - shift


CALLS = {
    "a static string": lambda f: f(7.0, "add"),
    "another static string": lambda f: f(7.0, "subtract"),
    "a keyword": lambda f: f(7.0, how="add", shift=10.0),
    "keywords in another order": lambda f: f(shift=10.0, how="subtract", x=7.0),
    "a keyword after defaults": lambda f: f(7.0, "multiply", flag=4.0),
    "None": lambda f: f(7.0, "subtract", flag=None),
    "a static bool": lambda f: f(7.0, "multiply", flag=True),
}


@pytest.mark.long
@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("call", CALLS)
def test_arguments_reach_the_parameters_they_have_in_python(call, transform):
    callback = compiled(options_of)
    returned = transform(lambda: CALLS[call](callback))()
    assert float(returned) == CALLS[call](options_of)


def test_static_arguments_of_another_value_or_type_are_compiled_separately():
    def longer(x, text):
        return x + len(text)

    callback = compiled(longer)
    program = jax.jit(callback, static_argnums=1)
    assert [float(program(1.0, text)) for text in ("ab", b"abc", "abcd", "ab")] == [3, 4, 5, 3]


def test_equal_constants_of_another_type_are_not_the_same_argument():
    """1 == True, but numba computes with their types."""
    assert Constant(1, int) == Constant(1, int) != Constant(True, bool)


class Color(enum.Enum):
    RED, BLUE = 1, 2


def test_members_of_an_enum_are_static_arguments():
    def shifted(x, color):
        return x + 1 if color == Color.RED else x + 2

    program = jax.jit(compiled(shifted), static_argnums=1)
    assert [float(program(1.0, color)) for color in Color] == [2, 3]


def test_nested_tuples_of_arrays_arrive_as_tuples():
    def combined(x, pair, one):
        inner, y = pair
        return x + inner[0].sum() * y + one[0]

    args = (np.float32(2), ((X,), np.float32(10)), (np.float32(1000),))
    for transform in (lambda f: f, jax.jit):
        assert float(transform(compiled(combined))(*args)) == combined(*args)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_any_number_of_positional_arguments_arrives_as_a_tuple(count):
    def total(x, *others):
        for other in others:
            x = x + other
        return x

    numbers = [float(2**n) for n in range(count + 1)]
    for transform in (lambda f: f, jax.jit):
        assert float(transform(compiled(total))(*numbers)) == 2 ** (count + 1) - 1


def test_no_further_positional_arguments_are_an_empty_tuple():
    def count(x, *others):
        return x + len(others)

    assert float(jax.jit(compiled(count))(5.0)) == 5


def test_functions_without_arguments_are_called():
    assert float(jax.jit(compiled(lambda: 2.5))()) == 2.5


def test_arguments_of_rank_0_are_numbers():
    """In Python they are arrays: x.shape is ()."""

    def half(x):
        return x / 2 if x > 0 else float(np.floor(x))

    assert [float(jax.jit(compiled(half))(x)) for x in (5.0, -0.5)] == [2.5, -1.0]


@pytest.mark.long
def test_one_kernel_serves_all_shapes_of_a_rank_and_dtype():
    def doubled(x):
        return x + x

    callback = compiled(doubled, "x")
    for size in range(1, 101):
        x = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(jax.jit(callback)(x), 2 * x)
    kernels = compiled_function(callback.host.current)._kernels
    assert len(kernels) == 1
    jax.jit(callback)(np.arange(3))
    jax.jit(callback)(np.ones((2, 2), np.float32))
    assert len(kernels) == 3


@pytest.mark.parametrize("transform", [lambda f: f, jax.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_dtypes_that_numba_does_not_compute_with_are_refused(dtype, transform):
    def same(x):
        return x

    with pytest.raises(Exception) as caught:
        transform(compiled(same, "x"))(jnp.ones(3, dtype))
    error = jaxcb.host_error(caught.value) or caught.value
    assert type(error) is TypeError
    assert f"cannot compile same for {dtype.__name__}: " in str(error)
    assert "Convert to float32" in str(error)


REFUSED = {
    "dict": ({"a": 1.0}, "a dict as an argument.*Pass its arrays as arguments"),
    "list": ([1.0], "a list as an argument.*Pass its arrays as arguments"),
    "tuple with a dict": (({"a": 1.0},), "a dict as an argument"),
    "object": (object(), "static argument <object .*has no type for a.* object.*Pass numbers"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_arguments_that_numba_has_no_type_for_are_refused(kind):
    value, message = REFUSED[kind]
    with pytest.raises(TypeError, match=f"cannot compile same for .*{message}"):

        def same(x, other):
            return x

        jax.jit(lambda x: compiled(same)(x, value))(1.0)


@pytest.mark.parametrize("result", [{"a": SCALAR}, (SCALAR, {"b": SCALAR})])
def test_results_in_a_dict_are_refused(result):
    with pytest.raises(TypeError, match=r"cannot compile same for a result with the key.*tuple"):

        def same(x):
            return {"a": x}

        jax.jit(compiled(same, result))(1.0)


def test_keyword_collectors_are_refused():
    def same(x, **others):
        return x

    with pytest.raises(TypeError, match=r"numba cannot compile same: it has no \*\*others"):
        jax.jit(compiled(same))(1.0)


@pytest.mark.long
def test_outputs_of_buffer_callbacks_are_arrays_even_of_rank_0():
    @jaxcb.buffer(result=lambda x: (x, SCALAR), compile="numba")
    def written(out, x):
        values, total = out
        values[:] = 2 * x
        total[()] = x.sum()

    for transform in (lambda f: f, jax.jit):
        values, total = transform(written)(X)
        np.testing.assert_array_equal(values, 2 * X)
        assert float(total) == X.sum()


def test_buffer_callbacks_write_the_memory_of_each_batch_element():
    @jaxcb.buffer(result="x", compile="numba")
    def written(out, x, y):
        for place in range(x.size):
            out[place] = x[place] - y

    xs = np.arange(24, dtype=np.float32).reshape(2, 4, 3)
    ys = np.float32([10, 20, 30, 40])
    program = jax.jit(jax.vmap(jax.vmap(written), in_axes=(0, None)))
    np.testing.assert_array_equal(program(xs, ys), xs - ys[:, None])
