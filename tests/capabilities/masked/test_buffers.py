"""Masked buffer callbacks write the needed elements alone, in XLA's memory where they can."""

import jax
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

X = np.arange(6, dtype=np.float32)
NEEDED = X % 2 == 1
ROWS = X.reshape(3, 2)


def masked(f, otherwise=-1):
    return jax.jit(jax.vmap(lambda m, x: f.where(m, x, otherwise=otherwise)))


def test_call_gets_the_memory_of_its_element():
    """As without a mask: nothing is copied on the way in or out."""
    steps = []

    @jaxcb.buffer(result="x")
    def host(out, x):
        steps.append((out.ctypes.data, x.ctypes.data))
        out[...] = 2 * x

    found = masked(host)(np.array([True, False, True]), ROWS)
    np.testing.assert_array_equal(found, [[0, 2], [-1, -1], [8, 10]])
    (out, x), (other_out, other_x) = steps
    assert (other_out - out, other_x - x) == (16, 16)


@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_unwritten_output_of_a_needed_element_is_an_error(method):
    @jaxcb.buffer(result="x", vmap_method=method, check=True)
    def host(out, x):
        out[x < 5] = 0

    mask = np.array([True, False, False, True, False, False])
    assert masked(host)(mask, X).tolist() == [0, -1, -1, 0, -1, -1]
    with pytest.raises(jax.errors.JaxRuntimeError) as raised:
        masked(host)(NEEDED, X)
    assert "did not write 1 of" in str(jaxcb.host_error(raised.value))


@pytest.mark.parametrize("jitted", [False, True])
def test_failing_element_is_named_and_recorded(jitted):
    def host(out, x):
        if x == 3:
            raise ValueError("no luck")
        out[...] = x

    f = jaxcb.buffer(host, result="x")
    program = masked(f) if jitted else jax.vmap(lambda m, x: f.where(m, x, otherwise=0))
    with jaxcb.record() as r, pytest.raises(jax.errors.JaxRuntimeError) as raised:
        program(NEEDED, X)
    assert str(jaxcb.host_error(raised.value)) == "no luck"
    assert [(c.element, c.error) for c in r.recording] == [(1, None), (3, "ValueError: no luck")]
    (mask,) = r.recording.masks
    assert (mask.elements, mask.needed) == (6, 3)
    failed = r.recording.sample_values[-1]
    assert (failed.element, failed.operands, failed.failed) == (3, ("3",), True)


def test_side_effect_happens_where_the_mask_is_true_though_the_result_is_unused():
    seen = []

    @jaxcb.buffer(result="x", has_side_effect=True)
    def log(out, x):
        seen.append(float(x))
        out[...] = x

    def program(m, x):
        log.where(m, x, otherwise=0)
        return x

    jax.block_until_ready(jax.jit(jax.vmap(program))(NEEDED, X))
    assert seen == [1, 3, 5]
