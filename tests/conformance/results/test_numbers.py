"""Numbers that fit the declared dtype are converted; all others, also of 64 bits, are refused."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from tests.conformance._parameters import X, assert_readable, eager_or_jit

ACCEPTED = {  # declared, result, what JAX gets
    "float64 for float32": ("float32", np.float64(1 / 3), np.float32(1 / 3)),
    "float64 for float16": ("float16", np.float64(1 / 3), np.float16(1 / 3)),
    "float64 for bfloat16": ("bfloat16", np.float64(1 / 3), ml_dtypes.bfloat16(1 / 3)),
    "float32 for bfloat16": ("bfloat16", np.float32(1 / 3), ml_dtypes.bfloat16(1 / 3)),
    "bfloat16 for float32": ("float32", ml_dtypes.bfloat16(1.5), np.float32(1.5)),
    "float16 for float32": ("float32", np.float16(1 / 3), np.float32(np.float16(1 / 3))),
    "underflow": ("float32", np.float64(1e-300), np.float32(0)),
    "largest that rounds down": ("float32", np.float64(3.4028235e38), np.float32(3.4028235e38)),
    "nan": ("float32", np.float64("nan"), np.float32("nan")),
    "infinite": ("float32", np.float64("inf"), np.float32("inf")),
    "minus infinite": ("float16", np.float32("-inf"), np.float16("-inf")),
    "complex128 for complex64": ("complex64", np.complex128(1 / 3 + 1j), np.complex64(1 / 3 + 1j)),
    "int64 for int32": ("int32", np.int64(2**31 - 1), np.int32(2**31 - 1)),
    "int64 for int8": ("int8", np.int64(-128), np.int8(-128)),
    "int8 for uint8": ("uint8", np.int8(127), np.uint8(127)),
    "uint64 for int32": ("int32", np.uint64(7), np.int32(7)),
    "int8 for int32": ("int32", np.int8(-1), np.int32(-1)),
    "Python float": ("float32", 0.1, np.float32(0.1)),
    "Python int": ("int32", 7, np.int32(7)),
    "Python int for uint8": ("uint8", 255, np.uint8(255)),
    "Python bool": ("bool", True, np.bool_(True)),
    "Python complex": ("complex64", 1 + 2j, np.complex64(1 + 2j)),
}
REFUSED = {  # declared, result, words of the message
    "int64 for int8": ("int8", np.int64(128), ["128", "int8"]),
    "int64 for int32": ("int32", np.int64(2**40 + 7), ["1099511627783", "int32"]),
    "just too large for int32": ("int32", np.int64(2**31), ["2147483648", "int32"]),
    "negative for uint8": ("uint8", np.int64(-1), ["-1", "uint8"]),
    "negative of the same width": ("uint8", np.int8(-1), ["-1", "uint8"]),
    "too large of the same width": ("int8", np.uint8(200), ["200", "int8"]),
    "negative for a wider unsigned": ("uint32", np.int8(-5), ["-5", "uint32"]),
    "same width, 32 bits": ("int32", np.uint32(2**32 - 1), ["4294967295", "int32"]),
    "uint64 for int32": ("int32", np.uint64(2**64 - 1), ["18446744073709551615", "int32"]),
    "Python int": ("int32", 2**31, ["2147483648", "int32"]),
    "huge Python int": ("int32", 2**70, ["1180591620717411303424", "int32"]),
    "float64 becomes infinite": ("float32", np.float64(1e300), ["1e+300", "float32"]),
    "float32 becomes infinite": ("float16", np.float32(70000), ["70000", "float16"]),
    "bfloat16 becomes infinite": ("bfloat16", np.float64(3.4e38), ["3.4e+38", "bfloat16"]),
    "Python float": ("float32", 1e300, ["1e+300", "float32"]),
    "complex becomes infinite": ("complex64", np.complex128(1e300j), ["1e+300", "complex64"]),
    "complex to real": ("float32", np.complex64(1 + 2j), ["(1+2j)", "float32"]),
    "complex without imaginary part": ("float32", np.complex64(1), ["(1+0j)", "float32"]),
    "float to int": ("int32", np.float32(1.5), ["1.5", "int32"]),
    "whole float to int": ("int32", np.float64(2), ["2.0", "int32"]),
    "Python float to int": ("int32", 2.5, ["2.5", "int32"]),
    "text": ("float32", "1.5", ["1.5", "float32"]),
    "object": ("float32", np.array(None, object), ["None", "float32"]),
}


@pytest.mark.parametrize(("dtype", "result", "expected"), ACCEPTED.values(), ids=ACCEPTED)
def test_number_that_fits_is_converted_to_the_declared_dtype(
    returning, run, dtype, result, expected
):
    f, seen = returning(result, jax.ShapeDtypeStruct((), jnp.dtype(dtype)))
    for g in (f, jax.jit(f)):
        got = np.asarray(run(g, X))
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, expected)
    assert len(seen) == 2


@pytest.mark.parametrize(("dtype", "result", "words"), REFUSED.values(), ids=REFUSED)
def test_error_shows_the_number_that_does_not_fit(returning, failure, dtype, result, words):
    """Numbers never wrap around, become infinite or lose their fraction silently."""
    f, seen = returning(result, jax.ShapeDtypeStruct((), jnp.dtype(dtype)))
    for g in (f, jax.jit(f)):
        message = assert_readable(failure(g, X))
        assert [word for word in words if word not in message] == []
    assert len(seen) == 2


def test_error_shows_which_value_of_an_array_does_not_fit(returning, failure):
    result = np.zeros(1000)
    result[777] = -1.25e300
    f, seen = returning(result, jax.ShapeDtypeStruct((1000,), np.float32))
    assert "-1.25e+300" in assert_readable(failure(jax.jit(f), X))
    assert len(seen) == 1


def test_error_about_a_large_array_is_short(returning, failure):
    """All its values have the wrong kind of dtype."""
    f, seen = returning(np.full(10_000, 1.5), jax.ShapeDtypeStruct((10_000,), np.int32))
    assert "1.5" in assert_readable(failure(jax.jit(f), X))
    assert len(seen) == 1


class Convertible:
    """An object whose only array method is ``__array__``."""

    def __array__(self, dtype=None, copy=None):
        return np.asarray(X, dtype)


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)), None),
        (np.arange(24, dtype=np.float32).reshape(4, 6)[::2, ::-2], None),
        (np.arange(6, dtype=np.float32).reshape(3, 2).T, None),
        (np.broadcast_to(X, (2, 3)), None),
        (np.arange(6, dtype=">f4").reshape(2, 3), None),
        (Convertible(), X),
        (np.float32(2), None),
    ],
    ids=["Fortran", "strided", "transposed", "broadcast", "big-endian", "__array__", "np.float32"],
)
def test_result_may_have_any_memory_layout_or_byte_order(returning, run, result, expected):
    expected = np.array(result if expected is None else expected, np.float32)
    f, seen = returning(result, jax.ShapeDtypeStruct(expected.shape, np.float32))
    for g in (f, jax.jit(f)):
        np.testing.assert_array_equal(run(g, X), expected)
    assert len(seen) == 2


WIDE = ["float64", "int64", "uint64", "complex128"]


@eager_or_jit
@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_without_x64_is_an_error_when_called(pure, dtype, compiled):
    """JAX raises too, before any host call."""
    seen = []
    f = pure(seen.append, jax.ShapeDtypeStruct((), np.dtype(dtype)))  # the declaration is valid
    with pytest.raises(ValueError, match=r"64|x64"):
        compiled(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_of_io_without_x64_is_an_error_when_called(io, dtype):
    """JAX raises too, before any host call."""
    seen = []
    f = io(seen.append, {"here": jax.ShapeDtypeStruct((), np.dtype(dtype))})
    with pytest.raises(ValueError, match=r"64|x64"):
        jax.jit(f)(X)
    assert seen == []


@pytest.mark.parametrize("dtype", WIDE)
def test_64_bit_result_with_x64_is_exact(our_pure, run, dtype):
    returned_value = np.array(2**53 - 1, dtype)
    with jax.enable_x64(True):
        f = our_pure(lambda x: returned_value, jax.ShapeDtypeStruct((), np.dtype(dtype)))
        got = np.asarray(run(jax.jit(f), X))
    assert got.dtype == dtype
    assert got == returned_value


def test_result_declared_like_a_64_bit_argument_has_the_dtype_jax_gives_the_argument(run):
    """Without x64, JAX truncates x to 32 bits, and ``result="x"`` means the truncated dtype."""
    seen = []

    @jaxcb.pure(result="x")
    def double(x):
        seen.append(x.dtype.name)
        return 2 * x

    returned_value = run(double, np.ones(3))
    assert returned_value.dtype == np.float32
    np.testing.assert_array_equal(returned_value, 2 * np.ones(3))
    assert seen == ["float32"]
