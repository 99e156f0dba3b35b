"""JAX's host functions get JAX arrays and no static arguments: jax-ml/jax#21526, jax-ml/jax#12194.

NumPy functions expect NumPy arrays but get JAX arrays, JAX refuses strings and enums, and a typed
PRNG key loses its type. Our callbacks pass NumPy arrays and hashable values unchanged, and with
``arrays="jax"`` they pass the key as a key.
"""

import enum

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ._both import OURS, THEIRS

PAIR = jax.ShapeDtypeStruct((2,), np.float32)
X = np.float32([1, 2])

eager_or_jit = pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
pure_or_io = pytest.mark.parametrize("flavor", ["pure", "io"])


def call_of(callbacks, flavor):
    return {"pure": callbacks.pure_callback, "io": callbacks.io_callback}[flavor]


def noise(seed):
    return np.random.default_rng(seed).standard_normal(2).astype(np.float32)


@eager_or_jit
@pytest.mark.parametrize("seed", [[1, 2], [0, 2**32 - 1]], ids=str)
def test_numpy_generator_accepts_key_data_from_ours_and_not_from_jax(seed, compiled):
    """With ours, it draws the same numbers as NumPy seeded with the key data."""
    data = jnp.asarray(np.uint32(seed))
    with pytest.raises(jax.errors.JaxRuntimeError, match="SeedSequence expects"):
        jax.block_until_ready(compiled(lambda k: THEIRS.pure_callback(noise, PAIR, k))(data))
    ours = compiled(lambda k: OURS.pure_callback(noise, PAIR, k))(data)
    np.testing.assert_array_equal(ours, noise(np.uint32(seed)))


def write(x):
    with pytest.raises(ValueError, match="read-only"):
        x += 1
    with pytest.raises(ValueError, match="read-only"):
        x[0] = 9
    return x


@eager_or_jit
@pytest.mark.parametrize("copied", [np.asarray, np.array], ids=["not copied", "copied"])
def test_argument_is_read_only_and_its_copy_is_not(copied, compiled):
    """The host function cannot change the caller's array."""
    written = []

    def host(x):
        x = copied(x)
        if x.flags.writeable:
            x += 1
        else:
            write(x)
        written.append(x.tolist())
        return x

    x = jnp.asarray(X)
    expected = X + (copied is np.array)
    for callbacks in (THEIRS, OURS):
        result = compiled(lambda x, c=callbacks: c.pure_callback(host, PAIR, x))(x)
        np.testing.assert_array_equal(result, expected)
    assert written == 2 * [expected.tolist()]
    np.testing.assert_array_equal(x, X)


@eager_or_jit
def test_our_argument_is_a_numpy_array_and_that_of_jax_is_not(compiled):
    kinds = []

    def host(x):
        kinds.append(type(x))
        return np.asarray(x)

    for callbacks in (THEIRS, OURS):
        f = compiled(lambda x, c=callbacks: c.pure_callback(host, PAIR, x))
        np.testing.assert_array_equal(f(X), X)
    theirs, ours = kinds
    assert issubclass(theirs, jax.Array)
    assert ours is np.ndarray


class Unit(enum.Enum):
    METER = 1
    FOOT = 0.3048


STATIC = {
    "string": ("meter", "foot"),
    "enum": (Unit.METER, Unit.FOOT),
    "frozenset": (frozenset({1}), frozenset({2})),
    "dtype": (np.dtype("float32"), np.dtype("int8")),
    "type": (int, float),
}


@eager_or_jit
@pure_or_io
@pytest.mark.parametrize("values", STATIC.values(), ids=STATIC)
def test_ours_passes_hashable_arguments_unchanged_and_jax_refuses_them(values, flavor, compiled):
    """As positional arguments, inside a pytree and as keyword arguments."""
    seen = []

    def host(name, x, tree, *, unit):
        seen.append((name, tree["name"], unit))
        return x * np.float32(values.index(unit) + 1)

    def program(callbacks, value):
        call = call_of(callbacks, flavor)
        return compiled(lambda x: call(host, PAIR, value, x, {"name": value}, unit=value))

    with pytest.raises(TypeError):
        program(THEIRS, values[0])(X)
    assert seen == []
    for i, value in enumerate(values):
        np.testing.assert_array_equal(program(OURS, value)(X), X * (i + 1))
        jax.effects_barrier()
        assert seen.pop() == (value, value, value)
        assert seen == []


@eager_or_jit
@pytest.mark.parametrize("batch", [(), (3,)], ids=["one key", "three keys"])
@pytest.mark.parametrize("implementation", ["threefry2x32", "rbg"])
def test_typed_key_arrives_as_key_data_and_with_jax_arrays_as_a_key(
    implementation, batch, compiled
):
    """JAX's own callback always passes the key data, as a JAX array."""
    key = jax.random.key(3, impl=implementation)
    key = jax.random.split(key, batch) if batch else key
    words = np.asarray(jax.random.key_data(key))
    seen = []

    def host(k):
        seen.append(k)
        return X

    def arrived(callbacks, **options):
        program = compiled(lambda k: callbacks.pure_callback(host, PAIR, k, **options))
        jax.block_until_ready(program(key))
        return seen.pop()

    raw = arrived(THEIRS)
    assert isinstance(raw, jax.Array) and raw.dtype == np.uint32
    np.testing.assert_array_equal(raw, words)
    ours = arrived(OURS)
    assert type(ours) is np.ndarray and ours.dtype == np.uint32
    np.testing.assert_array_equal(ours, words)
    typed = arrived(OURS, arrays="jax")
    assert jnp.issubdtype(typed.dtype, jax.dtypes.prng_key)
    assert (typed.shape, typed.dtype) == (batch, key.dtype)
    np.testing.assert_array_equal(jax.random.key_data(typed), words)
