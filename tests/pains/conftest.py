import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest


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


@pytest.fixture(scope="session")
def child():
    """``child(program, **options)``: the JSON a program of this folder prints at its end."""

    def run(program, **options):
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name(program), json.dumps(options)],
            capture_output=True,
            text=True,
            timeout=60,  # four times what the longest takes; a hang is a failure
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
