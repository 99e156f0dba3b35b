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


class Compiles:
    """Counts programs compiled while it is entered."""

    def __enter__(self):
        self.count, self.entered = 0, True
        jax.monitoring.register_event_duration_secs_listener(self.hear)
        return self

    def hear(self, event, duration, **facts):
        # JAX 0.8 has no public way to take a listener away: this one just stops counting.
        self.count += self.entered and event.endswith("backend_compile_duration")

    def __exit__(self, *exc):
        self.entered = False


@pytest.fixture
def compiles():
    """``with compiles() as counted:``, then ``counted.count`` programs were compiled."""
    return Compiles
