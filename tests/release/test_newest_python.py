"""`.ci/run` tries the newest JAX where there is a Python for it."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def fake(tmp_path):
    """Return a function that makes an executable that prints like a probed Python."""

    def make(place, printed):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\necho {printed}\n")
        path.chmod(0o755)
        return str(path)

    return make


@pytest.mark.kept
@pytest.mark.parametrize("found", [True, False])
def test_ci_tries_the_newest_jax_where_there_is_a_python_for_it(fake, tmp_path, found):
    """Run .ci/run beside nothing, with a `make` that prints its arguments."""
    shutil.copytree(ROOT / ".ci", tmp_path / "checkout" / ".ci")
    for name in ("bash", "dirname"):
        (tmp_path / name).symlink_to(shutil.which(name))
    fake("make", '"make $@"')
    python = fake("python3.13", "3 13") if found else None
    done = subprocess.run(
        [tmp_path / "checkout" / ".ci" / "run"], env={"PATH": str(tmp_path)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    last = done.stdout.splitlines()[-1]
    assert last == (
        f"make quick-latest PYTHON={python}"
        if found
        else "make quick-latest was skipped: it needs python3.13, which is not in PATH"
    )
    assert "make test-floor\n" in done.stdout and not done.stderr
