"""Calls that return NaN or infinity are counted as NumPy would count them."""

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb.recording import NotFinite
from jupyter_jaxcb.report import MIME_TYPE, to_html, to_mimebundle, to_text


def struct(shape=(), dtype=np.float32):
    return jax.ShapeDtypeStruct(shape, dtype)


def counts(recording):
    return [(found.produced, found.passed_on) for found in recording.not_finite]


def returning(returned_value, calls=5, elements=False):
    """Return the counts for a host function that returns `returned_value` for finite arguments."""
    out = struct(returned_value.shape, returned_value.dtype)
    f = lambda x: jaxcb.pure_callback(lambda x: returned_value, out, x, vmap_method="sequential")  # noqa: E731
    with jax.enable_x64(True), jaxcb.record() as recorded:
        if elements:
            jax.jit(jax.vmap(f))(jnp.ones(calls)).block_until_ready()
        else:
            program = jax.jit(f)
            for _ in range(calls):
                program(1.0).block_until_ready()
    return counts(recorded.recording)


WITH_INFINITY = [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2, np.float32, np.float64]
WITH_NAN = [*WITH_INFINITY, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3b11fnuz, np.complex64,
            np.complex128]  # fmt: skip
NAME = {"ids": lambda dtype: np.dtype(dtype).name}
shapes = pytest.mark.parametrize("shape", [(), (1,), (2, 3), (64, 64)], ids=str)
elements = pytest.mark.parametrize("elements", [False, True], ids=["calls", "elements"])


@pytest.mark.long
@elements
@shapes
@pytest.mark.parametrize("dtype", WITH_NAN, **NAME)
def test_one_nan_anywhere_is_counted_in_every_call(dtype, shape, elements):
    returned_value = np.ones(shape, dtype)
    returned_value.flat[-1] = np.nan
    assert returning(returned_value, elements=elements) == [(5, 0)]


@pytest.mark.parametrize(
    ("size", "seen"), [(4_096, 5), (4_097, 3)], ids=["4,096", "more: sampled calls only"]
)
def test_large_results_are_checked_in_sampled_calls_only(size, seen):
    returned_value = np.ones(size, np.float32)
    returned_value[-1] = np.inf
    assert returning(returned_value) == [(seen, 0)]


def test_every_flavor_with_a_result_is_checked():
    with jaxcb.record() as recorded:
        jaxcb.io_callback(lambda: np.float32(np.nan), struct())
        jaxcb.debug_callback(lambda x: np.nan, np.float32(np.nan))  # returns nothing
    assert counts(recorded.recording) == [(1, 0)]


SPECIAL = [0.0, -1.5, 1e30, np.nan, np.inf, -np.inf]
values = st.sampled_from(SPECIAL)


def numpy_counts(arguments, results):
    wrong = [not np.isfinite(result).all() for result in results]
    given_wrong = [not all(np.isfinite(a).all() for a in args) for args in arguments]
    passed_on = sum(a and b for a, b in zip(wrong, given_wrong, strict=True))
    return [(sum(wrong) - passed_on, passed_on)] if any(wrong) else []


@settings(max_examples=40)
@given(st.data(), st.integers(1, 9), st.sampled_from([(), (1,), (4,)]), st.booleans())
@pytest.mark.filterwarnings("ignore:overflow encountered in dot:RuntimeWarning")
def test_counts_of_random_calls_are_those_of_numpy(data, calls, shape, elements):
    size = int(np.prod(shape))
    arrays = st.lists(values, min_size=size, max_size=size).map(
        lambda numbers: np.array(numbers, np.float32).reshape(shape)
    )
    arguments = [(data.draw(arrays), data.draw(arrays)) for _ in range(calls)]
    results = [data.draw(arrays) for _ in range(calls)]
    returned_values = iter(results)
    f = lambda x, y: jaxcb.io_callback(lambda x, y: next(returned_values), struct(shape), x, y)  # noqa: E731
    with jaxcb.record() as recorded:
        if elements:
            xs, ys = (np.stack(column) for column in zip(*arguments, strict=True))
            jax.vmap(f)(xs, ys).block_until_ready()
        else:
            for args in arguments:
                f(*args)
    assert len(recorded.recording) == calls
    assert counts(recorded.recording) == numpy_counts(arguments, results)


def test_note_in_text_html_and_data_gives_the_counts():
    with jaxcb.record() as recorded:
        for value in (1.0, np.nan, np.inf):
            jaxcb.pure_callback(lambda x: np.float32(np.nan), struct(), value)
        jaxcb.pure_callback(lambda x: x, struct(), 1.0)
    recording = recorded.recording
    note = (
        "1 call returned NaN or infinity for finite arguments; "
        "2 calls returned NaN or infinity for non-finite arguments"
    )
    assert recording.not_finite == (NotFinite(0, 1, 2),)
    assert to_text(recording, times=False).count(note) == 1
    assert to_html(recording).count(note) == 1
    sites = to_mimebundle(recording)[0][MIME_TYPE]["sites"]
    assert [site.get("notes", []) for site in sites] == [[note], []]


def root(x):
    with np.errstate(invalid="ignore"):
        return np.sqrt(x)


@elements
@pytest.mark.parametrize("seed", range(5))
def test_calls_that_returned_nan_are_found_in_the_log(elements, seed):
    """Also among plain calls, whose crossings get their numbers later."""
    given = np.random.default_rng(seed).normal(size=50).astype(np.float32)
    given[seed::7] = np.nan
    f = jaxcb.pure(root, result="x")
    with jaxcb.record() as recorded:
        if elements:
            jax.jit(jax.vmap(f))(given).block_until_ready()
        else:
            program = jax.jit(f)
            for value in given:
                program(value).block_until_ready()
    recording = recorded.recording
    order = {(call.crossing, call.element): n for n, call in enumerate(recording)}
    found = [
        (order[one.crossing, one.element], one.passed_on) for one in recording.not_finite_calls
    ]
    wanted = [(n, np.isnan(x)) for n, x in enumerate(given.tolist()) if not x >= 0]
    assert found == wanted


@elements
def test_values_of_the_first_calls_that_returned_nan_are_kept(elements):
    given = np.array([1, 4, 9, 16, -1, 25, -2, np.nan, -3, -4], np.float32)
    f = jaxcb.pure(root, result="x")
    with jaxcb.record() as recorded:
        if elements:
            jax.jit(jax.vmap(f))(given).block_until_ready()
        else:
            for value in given:
                jax.jit(f)(value).block_until_ready()
    samples = [(*one.operands, *one.results) for one in recorded.recording.sample_values]
    assert samples == [
        ("1", "1"), ("4", "2"), ("9", "3"), ("-1", "nan"), ("-2", "nan"), ("-3", "nan"),
    ]  # fmt: skip
