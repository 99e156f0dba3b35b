"""``check=True`` finds outputs that are not written, whatever their dtype."""

import math

import jax
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import jupyter_jaxcb as jaxcb

DTYPES = [
    np.dtype(d)
    for d in (
        np.bool_, np.int8, np.uint8, np.int16, np.float16, ml_dtypes.bfloat16, np.int32,
        np.float32, np.complex64, ml_dtypes.float8_e4m3fn,
    )
]  # fmt: skip


@pytest.mark.long
@given(st.sampled_from(DTYPES), st.lists(st.integers(0, 4), max_size=3), st.data(), st.booleans())
def test_unwritten_elements_are_counted_and_the_first_is_named(dtype, shape, data, compiled):
    size = math.prod(shape)
    left = data.draw(st.sets(st.integers(0, max(size - 1, 0)), max_size=size), label="left out")
    written = np.array([n not in left for n in range(size)], bool).reshape(shape)
    value = data.draw(st.integers(0, 1 if dtype == np.bool_ else 100), label="value")

    @jaxcb.buffer(result=lambda: jax.ShapeDtypeStruct(tuple(shape), dtype), check=True)
    def partly(out):
        out[written] = value

    call = jax.jit(partly) if compiled else partly
    if not left:
        assert np.asarray(call()).tolist() == np.full(shape, value, dtype).tolist()
        return
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.block_until_ready(call())
    first = list(map(int, np.unravel_index(min(left), shape)))
    message = str(jaxcb.host_error(caught.value))
    assert message.startswith(
        f"partly did not write {len(left)} of the {size} elements of out {dtype.name}{shape}, the "
        f"first at {first}"
    )


def test_written_value_that_equals_the_canary_is_not_reported():
    # A byte equals the canary by chance once in 256 calls, which a thousand calls would hit.
    calls = []

    @jaxcb.buffer(result=lambda: jax.ShapeDtypeStruct((2,), np.uint8), check=True)
    def sevens(out):
        calls.append(1)
        out[...] = 7

    for _ in range(2_000):
        assert sevens().tolist() == [7, 7]
    assert 2_000 < len(calls) < 2_200  # called again if a value looked like the canary


def test_callback_with_side_effects_is_called_once_and_only_certain_omissions_are_reported():
    calls = []

    def make(dtype, size, written):
        @jaxcb.buffer(
            result=lambda: jax.ShapeDtypeStruct((size,), dtype), check=True, has_side_effect=True
        )
        def host(out):
            calls.append(1)
            out[:written] = 7

        return host

    for size in (1, 10, 1_000, 100_000):
        for _ in range(20):
            assert make(np.uint8, size, size)().shape == (size,)
    assert len(calls) == 80
    for dtype, size, written, count in (
        (np.uint8, 1_000, 900, "about 1[0-9][0-9]"),
        (np.float32, 1, 0, "1"),
        (np.int16, 9, 4, "about 5"),
    ):
        calls.clear()
        with pytest.raises(jax.errors.JaxRuntimeError, match=f"did not write {count} of the "):
            make(dtype, size, written)()
        assert calls == [1]
