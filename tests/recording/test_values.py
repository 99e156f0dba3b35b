"""Sample values are few, small and copies; NaN and infinity are counted per window."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jupyter_jaxcb.recording import SampleValues
from tests._threads import in_threads
from tests.interface import LoweredSite, NotFinite, Recorder, Site, record_call


def fact(name="f"):
    return LoweredSite(Site("pure", name, "m.py", 3, 0, cell=False), None, -1, (), ())


def take(recorder, lowered, operands=(), results=(), element=-1):
    """Record a row of the log and the sample values of one host call; return its crossing."""
    crossing = record_call(recorder, lowered, 1, 0, 1)
    recorder.values.take(lowered, crossing, element, operands, results)
    return crossing


def abbreviated(value):
    recorder = Recorder()
    take(recorder, fact(), [value])
    ((word,),) = [sample.operands for sample in recorder.freeze().sample_values]
    return word


BF16, INT4 = ml_dtypes.bfloat16, ml_dtypes.int4


@pytest.mark.parametrize(
    ("value", "word"),
    [
        (np.float32(0.25), "0.25"),
        (np.float64(1e200), "1e+200"),
        (np.float64(-np.inf), "-inf"),
        (np.arange(7), "[0, 1, 2, 3, 4, 5, …] (0 to 6)"),
        (np.arange(10, dtype=np.float32) / 10, "[0, 0.1, 0.2, 0.3, 0.4, 0.5, …] (0 to 0.9)"),
        (np.bool_(True), "True"),
        (np.array(2**64 - 1, np.uint64), "18446744073709551615"),
        (np.array([-8, 7], INT4), "[-8, 7]"),
        (np.array([0.5, 3], BF16), "[0.5, 3]"),
        (np.complex64(1 + 2j), "1+2j"),
        (np.zeros(0), "[]"),
        (np.arange(20)[::3], "[0, 3, 6, 9, 12, 15, …] (0 to 18)"),
        (np.arange(6).reshape(2, 3).T, "[0, 3, 1, 4, 2, 5]"),
        (np.broadcast_to(np.float32(2), (10**6, 10**6)), "[2, 2, 2, 2, 2, 2, …]"),
        (np.zeros(65_537), "[0, 0, 0, 0, 0, 0, …]"),
        (np.zeros(7, complex), "[0+0j, 0+0j, 0+0j, 0+0j, 0+0j, 0+0j, …]"),
        (np.full((2, 600), np.nan), "[nan, nan, nan, nan, nan, nan, …] (1,200 NaN)"),
    ],
)
def test_value_is_abbreviated_in_row_major_order(value, word):
    assert abbreviated(value) == word


@given(
    hnp.arrays(
        np.float32,
        hnp.array_shapes(max_dims=3, min_side=1, max_side=9),
        elements=st.floats(width=32, allow_subnormal=False),
    ).filter(lambda array: array.size > 6)
)
def test_range_and_counts_of_a_large_array_are_those_of_numpy(array):
    finite = array[np.isfinite(array)]
    words = [f"{finite.min():.6g} to {finite.max():.6g}"] if len(finite) else []
    counts = [(np.isnan(array).sum(), "NaN"), (np.isinf(array).sum(), "infinite")]
    words += [f"{count} {what}" for count, what in counts if count]
    assert abbreviated(array).endswith(f", …] ({', '.join(words)})")


@pytest.mark.parametrize("dtype", [BF16, INT4, np.int8, np.uint64, np.float16])
def test_every_dtype_of_real_numbers_has_a_range(dtype):
    assert abbreviated(np.arange(8).astype(dtype) % 7) == "[0, 1, 2, 3, 4, 5, …] (0 to 6)"


def test_three_sample_values_of_each_site_are_kept_and_a_thousand_in_all():
    recorder = Recorder()
    facts = [fact(f"f{number}") for number in range(400)]
    for lowered in facts:
        for number in range(4):
            crossing = take(recorder, lowered, [np.array(number)], [np.array(7)], element=number)
    samples = recorder.freeze().sample_values
    assert [(one.operands, one.element) for one in samples[:4]] == [
        (("0",), 0), (("1",), 1), (("2",), 2), (("0",), 0),
    ]  # fmt: skip
    assert samples[-1] == SampleValues(333, crossing - 66 * 4 - 3, 0, ("0",), ("7",))
    assert len(samples) == 1_000


def test_values_from_many_threads_are_counted_once_each():
    recorder, f = Recorder(), fact()

    def work(_):
        for number in range(500):
            take(recorder, f, [np.array(number)])
            recorder.values.not_finite(f, 1, 2)

    in_threads(work, range(4))
    recording = recorder.freeze()
    assert recording.not_finite == (NotFinite(0, 2_000, 4_000),)
    assert len(recording.sample_values) == 3
    calls = {call.crossing for call in recording}
    assert {sample.crossing for sample in recording.sample_values} <= calls
