"""The files in binder/ match the project; ``make binder`` runs them."""

import json
import os
import re
import subprocess
import sys
import tomllib
import urllib.parse
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BINDER = REPOSITORY / "binder"


def requirements():
    lines = (BINDER / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and line[0] != "#"]


def numbers(version):
    return tuple(map(int, version.split(".")))


def test_python_of_binder_is_supported():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    runtime = (BINDER / "runtime.txt").read_text().strip().removeprefix("python-")
    assert numbers(runtime) >= numbers(project["requires-python"].removeprefix(">="))


def test_jax_of_binder_is_pinned_to_a_supported_version():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    (pinned,) = [line.removeprefix("jax==") for line in requirements() if line.startswith("jax==")]
    (floor,) = [line for line in project["dependencies"] if line.startswith("jax>=")]
    assert numbers(pinned) >= numbers(floor.removeprefix("jax>="))


def imported(notebook):
    """Return the packages that the cells of a notebook import."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    lines = re.findall(r"^\s*import (.+)$", code, re.MULTILINE)
    names = [part.split()[0] for line in lines for part in line.split(",")]
    names += re.findall(r"^\s*from (\w[\w.]*) import", code, re.MULTILINE)
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize(
    "notebook", sorted((REPOSITORY / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem
)
def test_binder_installs_the_imports_of_a_notebook(notebook):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    lines = *requirements(), *project["dependencies"]
    installed = {re.match(r"[\w-]+", line)[0] for line in lines}
    used = imported(notebook) - {"jupyter_jaxcb"}
    assert used and used - set(sys.stdlib_module_names) <= {
        name.replace("-", "_") for name in installed
    }


def test_post_build_is_an_executable_script():
    script = BINDER / "postBuild"
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    assert script.read_text().splitlines()[:1] == ["#!/usr/bin/env bash"]
    assert "set -euo pipefail" in script.read_text()


def test_binder_link_opens_an_existing_notebook_in_lab():
    page = (REPOSITORY / "docs" / "installation.md").read_text()
    (address,) = re.findall(r"^https://mybinder\.org/v2/(\S+)$", page, re.MULTILINE)
    parts = urllib.parse.urlsplit(address)
    assert re.fullmatch(r"gh/[\w.-]+/jupyter_jaxcb/HEAD", parts.path)
    ((kind, place),) = urllib.parse.parse_qsl(parts.query)
    assert kind == "urlpath" and place.startswith("lab/tree/")
    assert (REPOSITORY / place.removeprefix("lab/tree/")).is_file()
