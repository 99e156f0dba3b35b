import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import hypothesis
import jax
import pytest

from jupyter_jaxcb.recording import active

# The same examples on every machine; `make fuzz` draws others.
hypothesis.settings.register_profile("same", derandomize=True, deadline=None)
if os.environ.get("JAXCB_FUZZ_RANDOM") != "1":
    hypothesis.settings.load_profile("same")


@pytest.fixture(autouse=True)
def _no_recorder_left_behind():
    assert active() is None
    yield
    jax.effects_barrier()
    assert active() is None
