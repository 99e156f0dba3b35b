"""What is wrong with a mask or with otherwise= is said before any call is made."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jupyter_jaxcb as jaxcb

made = []
f = jaxcb.io(lambda x: (made.append(1), x)[1], result="x")
pair = jaxcb.io(lambda x: (made.append(1), (x, x))[1], result=lambda x: (x, x))
nothing = jaxcb.io(lambda x: made.append(1), result=None)
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


def test_otherwise_must_fit_an_integer_result():
    with pytest.raises(TypeError, match=r"otherwise=0.5 does not fit the declared int32\[\]"):
        f.where(True, np.int32(1), otherwise=0.5)


def test_otherwise_must_fit_a_small_integer():
    with pytest.raises(TypeError, match=r"otherwise=1000 does not fit the declared int8\[\]"):
        f.where(True, np.int8(1), otherwise=1000)


def test_otherwise_is_required_if_there_is_a_result():
    with pytest.raises(TypeError, match=r"without otherwise=.* as declared: float32\[2\]."):
        f.where(True, x)


def test_otherwise_is_refused_if_there_is_no_result():
    with pytest.raises(TypeError, match=r"it returns nothing\. Drop otherwise="):
        nothing.where(True, x, otherwise=0)


def test_own_parameter_named_otherwise_is_passed_by_position():
    pick = jaxcb.pure(lambda x, otherwise: np.where(x > 1, x, otherwise), result="x")
    with pytest.raises(TypeError, match=r"not the parameter of .* Pass that one by position\."):
        pick.where(True, x, otherwise=x)
    np.testing.assert_array_equal(pick.where(True, x, 3 * x, otherwise=0), [3, 2])
    np.testing.assert_array_equal(pick.where(False, x, 3 * x, otherwise=0), [0, 0])
    with pytest.raises(TypeError, match=r"Rename the parameter\."):
        jaxcb.debug(lambda x, *, otherwise: None).where(True, x, otherwise=x)


def test_otherwise_is_broadcast_to_each_result():
    found = pair.where(False, x, otherwise=(np.float32([3, 4]), np.nan))
    np.testing.assert_array_equal(found, [[3, 4], [np.nan, np.nan]])
    np.testing.assert_array_equal(pair.where(False, x, otherwise=5), [[5, 5], [5, 5]])


def test_tap_cannot_be_masked_and_says_what_to_do():
    with pytest.raises(TypeError, match="Register it as debug"):
        jaxcb.tap(lambda x: None).where(True, x)
