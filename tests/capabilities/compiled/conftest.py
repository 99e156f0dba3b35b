import ctypes

import jax
import pytest

import jupyter_jaxcb as jaxcb


@pytest.fixture
def failure():
    """Return ``failure(function, *args)``: the exception of the host function, and its notes."""

    def raised(function, *args):
        with pytest.raises(Exception) as caught:
            jax.block_until_ready(function(*args))
        original = jaxcb.host_error(caught.value)
        assert original is not None, caught.value
        return original, "\n".join(original.__notes__)

    return raised


@pytest.fixture
def note():
    """Return a function that compiled code can call with a number, and the numbers it got."""
    got = []

    def append(number):
        got.append(number)
        return number

    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(append), got
