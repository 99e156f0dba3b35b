import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def child():
    """``child(program, **options)``: the JSON a program of this folder prints at its end."""

    def run(program, **options):
        done = subprocess.run(
            [sys.executable, Path(__file__).with_name(program), json.dumps(options)],
            capture_output=True,
            text=True,
            timeout=240,  # ten times what the longest takes; a hang is a failure
            env={**os.environ, "JAX_PLATFORMS": "cpu"},
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    return run
