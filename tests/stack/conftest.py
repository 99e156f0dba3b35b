import jax
import pytest

collect_ignore = ["shards.py"]  # a program of its own


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
