import jax.numpy as jnp
import numpy as np
import pytest

collect_ignore = ["devices.py"]  # a program of its own


@pytest.fixture
def x():
    return jnp.arange(6, dtype=jnp.float32).reshape(2, 3)


@pytest.fixture
def doubled():
    """A host function that writes twice its argument, and what it saw: address and flags."""

    class Doubled:
        def __init__(self):
            self.seen = []

        def __call__(self, out, x):
            self.seen.append((x, out))
            np.multiply(x, 2, out=out)

    return Doubled()
