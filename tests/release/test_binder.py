"""The files in binder/ match the project; ``make binder`` runs them."""

import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
BINDER = REPOSITORY / "binder"


def requirements():
    lines = (BINDER / "requirements.txt").read_text().splitlines()
    return [line for line in lines if line and line[0] != "#"]


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
