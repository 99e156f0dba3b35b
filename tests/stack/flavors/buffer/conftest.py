import jax.numpy as jnp
import numpy as np
import pytest


@pytest.fixture
def x():
    return jnp.arange(6, dtype=jnp.float32).reshape(2, 3)


@pytest.fixture
def doubled():
    """Return a host function that writes twice its argument, and keeps its arrays in `seen`."""

    class Doubled:
        def __init__(self):
            self.seen = []

        def __call__(self, out, x):
            self.seen.append((x, out))
            np.multiply(x, 2, out=out)

    return Doubled()
