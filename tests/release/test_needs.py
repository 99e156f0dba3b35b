"""`make` names what is missing before it builds anything."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release import needs


def problem(*names, **variables):
    """Return what the script prints, in an environment of these variables alone."""
    command = [sys.executable, needs.__file__, *names]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert (done.returncode == 0) is (not done.stderr)
    return done.stderr


@pytest.fixture
def path(tmp_path):
    """A PATH with npm and an old Node."""
    for name, prints in {"node": "v18.12.0", "npm": "10.1.0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho {prints}\n")
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_nothing_is_printed_if_only_python_is_needed():
    assert problem() == ""


def test_missing_old_and_partly_installed_nodes_are_named(path):
    assert problem("node", PATH="").startswith("Node 20.19 or later with npm is needed")
    assert "PATH has v18.12" in problem("node", PATH=str(path))
    (path / "node").write_text("#!/bin/sh\necho v20.19.1\n")
    assert problem("node", PATH=str(path)) == ""
    (path / "npm").unlink()
    assert "PATH has no npm" in problem("node", PATH=str(path))


def test_missing_chromium_is_named_with_the_command_that_installs_it(tmp_path):
    assert "apt-get install chromium" in problem("chromium", PATH="")
    (tmp_path / "google-chrome").touch(mode=0o755)
    assert problem("chromium", PATH=str(tmp_path)) == ""


def test_unreachable_package_index_is_named():
    offline = {**os.environ, "PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull}
    assert problem("network", **offline).startswith("pip cannot reach its package index")


def test_every_problem_has_a_line_of_its_own():
    assert len(problem("node", "chromium", PATH="").splitlines()) == 2


def test_script_is_read_by_old_pythons():
    """It has to say that a Python is too old, so it must not need a new one itself."""
    ast.parse(Path(needs.__file__).read_text("utf-8"), feature_version=(3, 7))
