"""What is wrong with a mask or with otherwise= is said before any call is made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

made = []
f = jaxcb.io(lambda x: (made.append(1), x)[1], result="x")
pair = jaxcb.io(lambda x: (made.append(1), (x, x))[1], result=lambda x: (x, x))
x = np.float32([1, 2])


@pytest.fixture(autouse=True)
def _no_call():
    made.clear()
    yield
    jax.effects_barrier()
    assert not made


@pytest.mark.parametrize(
    ("mask", "error", "words"),
    [
        (1.0, TypeError, "but got one of dtype float"),
        (np.int32(1), TypeError, "but got one of dtype int32. Compare, as in x > 0."),
        (None, TypeError, "but got None"),
        ("yes", TypeError, "but got 'yes'"),
        ([True], TypeError, r"but got \[True\]"),
        (np.array([True, False]), ValueError, r"has the shape \(2,\). Map over it: jax.vmap"),
    ],
)
def test_mask_must_be_a_boolean_scalar(mask, error, words):
    with pytest.raises(error, match=words):
        f.where(mask, x, otherwise=0)


@pytest.mark.parametrize("mask", [True, np.True_, np.array(True), jnp.array(False)])
def test_python_numpy_and_jax_booleans_are_masks(mask):
    expected = x if mask else [7, 7]
    np.testing.assert_array_equal(f.where(mask, x, otherwise=7), expected)
    made.clear()


@pytest.mark.parametrize(
    ("callback", "otherwise", "error", "words"),
    [
        (f, 1j, TypeError, r"otherwise=1j does not fit the declared float32\[2\]"),
        (f, None, ValueError, "does not have the structure"),
        (f, jax.random.key(0), TypeError, r"otherwise=key<fry>\[\] does not fit"),
        (f, "nan", TypeError, "otherwise='nan'"),
        (f, np.zeros(3), ValueError, r"otherwise=float32\[3\] does not broadcast to the declared"),
        (f, np.zeros((1, 2)), ValueError, r"otherwise=float32\[1,2\] does not broadcast"),
        (f, (0, 0), ValueError, "does not have the structure"),
        (pair, (0, 0, 0), ValueError, "does not have the structure"),
        (pair, (0, None), ValueError, "does not have the structure"),
        (pair, {"a": 0}, ValueError, "does not have the structure"),
    ],
)
def test_otherwise_must_fit_the_declared_result(callback, otherwise, error, words):
    with pytest.raises(error, match=words):
        callback.where(True, x, otherwise=otherwise)


def test_otherwise_is_required_if_there_is_a_result():
    with pytest.raises(TypeError, match=r"without otherwise=.* as declared: float32\[2\]."):
        f.where(True, x)


def test_tap_cannot_be_masked_and_says_what_to_do():
    with pytest.raises(TypeError, match="Register it as debug"):
        jaxcb.tap(lambda x: None).where(True, x)
