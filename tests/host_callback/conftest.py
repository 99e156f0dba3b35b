"""Fixtures for the tests of `host_callback`: a tap function that records its calls."""

import jax
import numpy as np
import pytest

from jupyter_jaxcb import host_callback as hcb


class Seen:
    """A tap function that records its calls; always the same object, so nothing recompiles."""

    def __init__(self):
        self.calls = []

    def __call__(self, arg, transforms, **device):
        self.calls.append((arg, transforms, device))

    @property
    def values(self):
        """The arguments as Python numbers and lists."""
        return [jax.tree.map(lambda x: np.asarray(x).tolist(), arg) for arg, _, _ in self.calls]

    @property
    def transforms(self):
        return [transforms for _, transforms, _ in self.calls]

    def of(self, function, *args):
        """Run `function`, wait for its calls, and return its result; forget all earlier calls."""
        self.calls.clear()
        result = jax.block_until_ready(function(*args))
        hcb.barrier_wait()
        return result


@pytest.fixture
def seen():
    return Seen()


def batch(*dims):
    """Return the entry of one vmap in `transforms`."""
    return ("batch", {"batch_dims": dims})


@pytest.fixture(autouse=True)
def _no_error_left_behind():
    yield
    hcb.barrier_wait()
