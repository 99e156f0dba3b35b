"""Conversions are the same in eager calls, programs and under vmap, with and without x64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests._vmap_methods import TOGETHER

from ._messages import message_of
from ._oracle import EVERY, INTS, NARROW, expected, interesting, limits, meaning

ELEMENTS = 3
SMALLEST = float(jnp.finfo(np.float32).tiny)  # the smallest normal number


def call_variants(shape, name, cast):
    """Return a callback called directly, in a program, and by element in another program."""
    results = []

    @jaxcb.pure(result=jax.ShapeDtypeStruct(shape, jnp.dtype(name)), cast=cast)
    def oracle(x):
        return results[-1]

    one, several = np.zeros((), np.float32), np.zeros(ELEMENTS, np.float32)
    return results, [(oracle, one), (jax.jit(oracle), one), (jax.jit(jax.vmap(oracle)), several)]


def few(came):
    """Return an ordinary number, the extremes, and a number that is not finite."""
    numbers = interesting(came)
    if meaning(came) in ("bool", "int"):
        return numbers[[0, len(numbers) // 2, -1]]
    sizes = np.abs(numbers.astype(np.complex128))
    numbers = numbers[(sizes == 0) | ~(sizes < SMALLEST)]  # XLA flushes subnormals to 0
    order = np.argsort(np.abs(numbers.astype(np.complex128)), kind="stable")
    return numbers[order[[0, len(order) // 2, len(order) * 3 // 4, -1]]]


def assert_every_variant(name, came, cast, shape):
    results, programs = call_variants(shape, name, cast)
    for source in came:
        for number in few(source):
            results.append(np.full(shape, number))
            wanted = expected(results[-1], name, cast=cast)
            for program, x in programs:
                if wanted is None:
                    with pytest.raises((jax.errors.JaxRuntimeError, ValueError)) as caught:
                        jax.block_until_ready(program(x))
                    message_of(caught.value, name, source)
                    continue
                got = np.asarray(program(x))
                assert (got.dtype, got.shape) == (wanted.dtype, (*x.shape, *shape))
                assert got.tobytes() == np.broadcast_to(wanted, got.shape).tobytes()


@pytest.mark.long
@pytest.mark.parametrize("name", NARROW)
def test_result_is_converted_the_same_in_every_variant_without_x64(name):
    assert_every_variant(name, EVERY, False, ())


@pytest.mark.long
@pytest.mark.parametrize("name", EVERY)
def test_result_is_converted_the_same_in_every_variant_with_x64(name):
    with jax.enable_x64(True):
        assert_every_variant(name, EVERY[::2], False, ())


@pytest.mark.parametrize("name", ["int4", "uint8", "int32", "float16", "float8_e5m2", "complex64"])
def test_cast_converts_the_same_in_every_variant(name):
    assert_every_variant(name, EVERY, True, ())


@pytest.mark.parametrize("name", ["float32", "int8", "bool"])
def test_arrays_are_converted_the_same_in_every_variant(name):
    assert_every_variant(name, ["bool", "int64", "float32", "float64", "complex64"], False, (2, 3))


@pytest.mark.parametrize("callback", [jax.pure_callback, jaxcb.pure_callback], ids=["jax", "ours"])
def test_subnormal_number_is_0_in_compiled_programs_as_with_jax(callback):
    """XLA's threads flush them to 0, in NumPy's code too. Eager calls are not affected."""
    declared = jax.ShapeDtypeStruct((), np.float32)
    tiny = np.float32(1e-30)
    f = jax.jit(lambda x: callback(lambda x: np.asarray(x) * tiny, declared, x))
    assert f(np.float32(1e-10)) == 0
    eager = jaxcb.pure_callback(lambda x: x * tiny, declared, np.float32(1e-10))
    assert np.asarray(eager) == np.float32(1e-40) > 0


@pytest.mark.parametrize("name", INTS)
def test_integer_of_a_loop_is_exact_in_every_step(name):
    """A scan makes the calls one after the other, in one program."""
    low, high = limits(name)
    numbers = [low, high, 0, 1]
    with jax.enable_x64(True):
        given = iter(numbers)

        @jaxcb.io(result=jax.ShapeDtypeStruct((2,), jnp.dtype(name)))
        def oracle(step):
            return np.full(2, next(given))

        got = jax.lax.scan(lambda c, step: (c, oracle(step)), 0, jnp.arange(len(numbers)))[1]
        assert np.asarray(got).tolist() == [[n, n] for n in numbers]


@pytest.mark.parametrize("method", TOGETHER)
def test_error_of_a_result_without_batch_axes_names_the_batch(method):
    total = jaxcb.pure(lambda x: np.sum(x), result="x.shape[:-1]", vmap_method=method)
    batch = jnp.ones((2, 4, 3))
    with pytest.raises(Exception) as caught:
        jax.jit(jax.vmap(jax.vmap(total)))(batch).block_until_ready()
    message = str(jaxcb.host_error(caught.value))
    assert "returned shape (), expected (2, 4): batch (2, 4) + declared ()" in message
    assert "Return one array for the whole batch, or" in message
