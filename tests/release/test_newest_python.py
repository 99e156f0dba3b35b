"""`make test-latest` finds the newest Python, or says what to install."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from . import newest_python

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


def test_newest_python_in_range_is_chosen(fake):
    found = [fake(f"{minor}/python3", f"3 {minor}") for minor in (11, 12, 13, 15)]
    assert newest_python.newest(found) == found[2]


def test_python_that_does_not_start_or_lacks_a_module_is_skipped(fake, tmp_path):
    broken = fake("broken/python3", "Traceback >&2; exit 1")
    empty = tmp_path / "python3"
    empty.touch()
    works = fake("works/python3", "3 12")
    assert newest_python.newest([broken, str(empty), works, "/no/such/python3"]) == works


def test_pythons_of_pyenv_and_uv_are_candidates(fake, tmp_path, monkeypatch):
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "uv"))
    first = fake("pyenv/versions/3.13.1/bin/python3", "3 13")
    second = fake("uv/cpython-3.14.0-linux/bin/python3", "3 14")
    assert {first, second} <= set(newest_python.candidates())


def run(**environment):
    return subprocess.run(
        [sys.executable, newest_python.__file__], env=environment, capture_output=True, text=True
    )


def test_variable_python_is_printed_unchecked():
    assert run(PYTHON="/of/mine/python3.13").stdout == "/of/mine/python3.13\n"


def test_one_line_says_what_to_install_if_none_is_found(tmp_path):
    done = run(PATH=str(tmp_path), HOME=str(tmp_path))
    assert done.returncode == 1 and not done.stdout
    assert done.stderr.count("\n") == 1 and "install one" in done.stderr


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
