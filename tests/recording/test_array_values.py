"""Arrays of sampled calls are summarized as NumPy would summarize them."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jupyter_jaxcb.recording import LoweredSite, Recorder, Site, record_call
from jupyter_jaxcb.recording.recorder._array_values import array_values

SITE = Site("pure", "f", "m.py", 3, 0, cell=False)


def picture(array):
    return array_values(0, np.asarray(array), 6).picture


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(max_dims=3, min_side=1, max_side=40),
        elements=st.floats(width=32, allow_subnormal=False),
    ).filter(lambda array: array.size > 6)
)
def test_range_and_counts_are_those_of_numpy(array):
    place, low, high, nan, inf, cells = array_values(2, array, 6)
    finite = array[np.isfinite(array)]
    assert (place, nan, inf) == (2, np.isnan(array).sum(), np.isinf(array).sum())
    wanted = (
        (f"{finite.min().item():.6g}", f"{finite.max().item():.6g}") if len(finite) else ("",) * 2
    )
    assert (low, high) == wanted
    rows = cells.split(" ")
    leading = array.size // array.shape[-1]
    assert [len(row) for row in rows] == [min(array.shape[-1], 32)] * min(leading, 8)
    assert set(cells) <= set("012345678x ")
    assert ("x" in cells) == (len(finite) < array.size)


def test_picture_shades_the_range_from_minimum_to_maximum():
    assert picture(np.arange(9.0)) == "012345678"
    shades = "".join(str(round(n * 8 / 31)) for n in range(32))
    assert picture(np.repeat(np.arange(32), 2)) == shades
    assert picture([[0, 8, np.nan], [8, -np.inf, 4], [0, 0, 0]]) == "08x 8x4 000"


def test_picture_of_the_largest_numbers_does_not_overflow():
    most = np.finfo(np.float64).max
    assert picture([most, -most] * 4) == "80808080"


def test_a_part_of_a_long_array_is_its_mean():
    array = np.zeros(64)
    array[63] = 8.0
    assert picture(array) == "0" * 31 + "4"


@pytest.mark.parametrize(
    "dtype", [ml_dtypes.bfloat16, ml_dtypes.int4, np.int8, np.uint64, np.float16]
)
def test_every_dtype_of_real_numbers_has_a_picture(dtype):
    found = array_values(0, np.arange(8).astype(dtype) % 7, 6)
    assert (found.minimum, found.maximum, found.picture) == ("0", "6", "01345780")


@pytest.mark.parametrize(
    "array",
    [np.zeros(6), np.zeros((0, 9)), np.zeros(65_537), np.zeros(9, bool), np.zeros(9, complex)],
    ids=["all values are listed", "empty", "large", "bool", "complex"],
)
def test_other_arrays_have_none(array):
    assert array_values(0, array, 6) is None


def test_sampled_calls_have_the_summaries_of_arguments_and_results():
    recorder = Recorder()
    lowered = LoweredSite(SITE, None, -1, (), ())
    crossing = record_call(recorder, lowered, 1, 0, 1)
    given_ = [np.float32(1), np.arange(7)]
    recorder.values.take(lowered, crossing, -1, given_, [np.full(9, np.nan)])
    given_[1][:] = 0  # the summary is of the values at the call
    ((first, second),) = [one.arrays for one in recorder.freeze().sample_values]
    assert first[:5] == (1, "0", "6", 0, 0)
    assert second == (2, "", "", 9, 0, "x" * 9)
