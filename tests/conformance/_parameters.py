"""What the test modules share: parametrizations, arrays, and a check of messages."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

eager_or_jit = pytest.mark.parametrize("compiled", [lambda f: f, jax.jit], ids=["eager", "jit"])
ordered_or_not = pytest.mark.parametrize("ordered", [False, True], ids=["unordered", "ordered"])


def assert_readable(error):
    """Assert that the message is one short line that names the host function `oracle`."""
    message = str(error)
    assert isinstance(error, (ValueError, TypeError)), repr(error)
    assert "oracle" in message, message
    assert "\n" not in message.strip(), message
    assert len(message) < 500, message
    return message


SCALAR = jax.ShapeDtypeStruct((), np.float32)
THREE = jax.ShapeDtypeStruct((3,), np.float32)
ZERO = np.float32(0)
TWO = np.float32(2)
X = np.float32([1, 2, 3])
FIVE_FROM_0 = np.arange(5, dtype=np.float32)
FIVE_FROM_1 = np.arange(1, 6, dtype=np.float32)
FIVE_TO_2 = np.linspace(0, 2, 5, dtype=np.float32)


def like_first(x, *rest):
    """Declare a result with the shape and dtype of the first argument."""
    return jax.ShapeDtypeStruct(jnp.shape(x), jnp.result_type(x))


def shapes(seen):
    """Return the shapes of the arguments of every host call, in call order."""
    return [tuple(arg.shape for arg in args) for args in seen]


def values(seen):
    """Return the arguments of every host call as plain Python values, in call order."""
    return [tuple(arg.tolist() for arg in args) for args in seen]


def assert_same_bits(a, b):
    a, b = np.asarray(a), np.asarray(b)
    assert (a.shape, a.dtype, a.tobytes()) == (b.shape, b.dtype, b.tobytes()), (a, b)
