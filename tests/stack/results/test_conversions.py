"""For every pair of dtypes, a result is converted as numpy does it, or refused for its value."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from tests.interface import ResultError, result_checker

from ._oracle import EVERY, expected, interesting, meaning

LEAF = jax.tree.structure(0)
casts = pytest.mark.parametrize("cast", [False, True], ids=["strict", "cast"])


def check(result, shape, name, cast=False):
    (array,) = result_checker("oracle", LEAF, [shape], [jnp.dtype(name)], cast=cast)(result)
    return array


def assert_same_bits(got, wanted):
    assert (type(got), got.dtype, got.shape) == (np.ndarray, wanted.dtype, wanted.shape)
    assert got.tobytes() == wanted.tobytes()


def assert_as_expected(result, name, cast):
    """Check that one result is converted or refused, as the oracle expects."""
    array = np.asarray(result)
    wanted = expected(array, name, cast=cast)
    if wanted is not None:
        assert_same_bits(check(result, array.shape, name, cast), wanted)
        return
    with pytest.raises(ResultError) as caught:
        check(result, array.shape, name, cast)
    message = str(caught.value)
    assert "\n" not in message and message.startswith("oracle returned "), message
    assert array.dtype.name in message and name in message, message


@pytest.mark.long
@casts
@pytest.mark.parametrize("came", EVERY)
def test_every_number_is_converted_as_numpy_does_it_or_refused(came, cast):
    for declared in EVERY:
        for number in interesting(came):
            assert_as_expected(number, declared, cast)
        for number in interesting(came)[::7]:
            assert_as_expected(np.asarray(number), declared, cast)


@pytest.mark.long
@pytest.mark.parametrize("came", EVERY)
def test_error_shows_the_first_number_that_does_not_fit_at_any_position(came):
    for declared in EVERY:
        numbers = interesting(came)[::-1]
        kept = [n for n in numbers if expected(np.asarray(n), declared) is not None]
        lost = [n for n in numbers if expected(np.asarray(n), declared) is None]
        if not kept or not lost:
            continue  # all of them fit, or none of this kind does
        array = np.array([*kept[:3], lost[0], *kept[:2], lost[-1]]).astype(jnp.dtype(came))
        with pytest.raises(ResultError) as caught:
            check(array, array.shape, declared)
        assert f"oracle returned {lost[0]!s} ({came}), which does" in str(caught.value)


bits = st.binary(min_size=0, max_size=6 * 16)


@st.composite
def arrays(draw):
    """Draw any bits in any memory layout: NaNs with a payload, strides, other byte orders."""
    name = draw(st.sampled_from(EVERY))
    dtype = jnp.dtype(name)
    if name == "bool":
        array = np.array(draw(st.lists(st.booleans(), max_size=6)), bool)
    elif name in ("int4", "uint4"):
        codes = np.frombuffer(draw(bits), np.uint8)[:6]
        array = (codes % 16 - (8 if name == "int4" else 0)).astype(np.int8).astype(dtype)
    else:
        raw = draw(bits)
        array = np.frombuffer(raw[: len(raw) // dtype.itemsize * dtype.itemsize], dtype)
    if draw(st.booleans()):
        array = array[::-1]
    if array.dtype.kind in "iufc" and draw(st.booleans()):
        array = array.astype(array.dtype.newbyteorder(">"))
    return array


@settings(max_examples=500)
@given(arrays(), st.sampled_from(EVERY), st.booleans())
def test_any_bits_are_converted_as_numpy_does_it_or_refused(array, declared, cast):
    assert_as_expected(array, declared, cast)


PYTHON = [True, False, 0, 1, -1, 7, 8, 255, 256, 2**31 - 1, 2**31, -(2**63), 2**63, 2**64 - 1]
PYTHON += [0.0, -0.0, 1.5, 1e300, float("inf"), float("nan"), 1j, 1e300j]


@casts
@pytest.mark.parametrize("declared", EVERY)
def test_python_numbers_are_converted_like_numpy_numbers(declared, cast):
    for number in PYTHON:
        assert_as_expected(number, declared, cast)


@pytest.mark.parametrize("dtype", ["int4", "int8", "uint32", "int32"])
@pytest.mark.parametrize("number", [2**70 + 5, -(2**70) - 3, 10**400 + 255], ids=lambda n: n % 1000)
def test_cast_wraps_a_python_integer_beyond_64_bits_around(number, dtype):
    wrapped = np.asarray(number % 2**64, np.uint64).astype(jnp.dtype(dtype))
    assert_same_bits(check(number, (), dtype, cast=True), wrapped)


@pytest.mark.parametrize("declared", EVERY)
@pytest.mark.parametrize("number", [2**64, -(2**70), 2**64 + 1, 10**400], ids=lambda n: n % 1000)
def test_python_integer_beyond_64_bits_fits_only_a_float_that_is_exactly_equal(number, declared):
    def exactly(cast):
        try:
            return int(cast.real) == number
        except (OverflowError, ValueError):  # infinite, NaN
            return False

    exact = None
    if meaning(declared) in ("float", "complex") and number < 10**300:
        with np.errstate(all="ignore"):
            exact = np.asarray(float(number)).astype(jnp.dtype(declared))
    if exact is not None and exactly(complex(exact)):
        assert_same_bits(check(number, (), declared), exact)
        return
    with pytest.raises(ResultError, match=f"does not fit the declared {declared}"):
        check(number, (), declared)


class Convertible:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


@pytest.mark.long
@casts
@pytest.mark.parametrize("came", EVERY)
def test_objects_with_an_array_and_jax_arrays_are_converted_like_arrays(came, cast):
    for number in interesting(came)[:12]:
        for declared in EVERY:
            array = np.asarray(number)
            wanted = expected(array, declared, cast=cast)
            with jax.enable_x64(True):
                returned_values = [Convertible(array), jnp.asarray(array)]
            for result in returned_values:
                if wanted is None:
                    with pytest.raises(ResultError, match=declared):
                        check(result, (), declared, cast)
                else:
                    assert_same_bits(check(result, (), declared, cast), wanted)


def test_conversions_cause_no_numpy_warnings():
    """Warnings are errors in tests: an integer for complex64, an overflow with cast."""
    assert check(np.int32(3), (), "complex64") == 3
    assert check(np.float64(1e300), (), "float16", cast=True) == np.inf
    assert check(np.array([1e300, np.nan]), (2,), "complex64", cast=True)[0] == np.inf


def test_long_doubles_are_converted_like_floats():
    third = np.longdouble(1) / 3
    assert_same_bits(check(third, (), "float32"), np.asarray(np.float32(1 / 3)))
    if np.finfo(np.longdouble).maxexp > 1024:
        with pytest.raises(
            ResultError, match=r"returned 1e\+4000 \(float128\), which does not fit"
        ):
            check(np.longdouble("1e4000"), (), "float64")


def test_number_is_not_clipped_for_a_dtype_without_infinity_and_nan():
    four_bits = "float4_e2m1fn"
    if not hasattr(jnp, four_bits):
        pytest.skip("this JAX has no float4")
    for fits in (6.0, -6.0, 0.4, 2.4):
        assert_same_bits(check(fits, (), four_bits), np.asarray(fits).astype(jnp.dtype(four_bits)))
    for lost in (100.0, -100.0, np.inf, np.nan):
        with pytest.raises(ResultError, match=f"returned {lost} "):
            check(lost, (), four_bits)


def _times(n):
    """Return times of 5 ms apart, which float32 cannot tell apart."""
    return 1.7e9 + 0.005 * np.arange(3)


REWRITTEN = "Half the house 4: flavors are rows; the room of results is written again there"


@pytest.mark.kept
@pytest.mark.xfail(strict=True, reason=REWRITTEN)
def test_a_recording_notes_that_distinct_numbers_became_equal():
    times = jaxcb.pure(_times, result=jax.ShapeDtypeStruct((3,), np.float32))
    with jaxcb.record() as recorded:
        jax.jit(times)(0).block_until_ready()
    assert "float64" in str(recorded.recording)


@pytest.mark.kept
def test_check_notes_that_distinct_numbers_became_equal():
    times = jaxcb.pure(_times, result=jax.ShapeDtypeStruct((3,), np.float32))
    assert "float64" in str(jaxcb.check(times, 0))
