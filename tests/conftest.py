import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import pytest

from jupyter_jaxcb.recording import active


@pytest.fixture(autouse=True)
def _no_recorder_left_behind():
    assert active() is None
    yield
    jax.effects_barrier()
    assert active() is None
