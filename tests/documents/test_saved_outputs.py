"""Saved outputs come from the JAX version the notebook names; nbval detects a wrong output."""

import configparser
import json
import re
from pathlib import Path

import pytest

from jupyter_jaxcb.recording import Status

from ._saved import MIME, PATHS, cells, environments, jax_of, outputs

WITHOUT_CALLBACKS = {"09-find-the-nan"}
notebooks = pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)


@notebooks
def test_notebook_names_the_jax_version_of_its_host_traces(path):
    own = set() if path.stem in WITHOUT_CALLBACKS else {(jax_of(path), "cpu")}
    assert environments(path) == own


@notebooks
def test_outputs_contain_no_local_path(path):
    for output in outputs(path):
        without_picture = {k: v for k, v in output.get("data", {}).items() if "png" not in k}
        text = json.dumps([without_picture, output.get("text"), output.get("traceback")])
        assert not re.search(r"/(home|work|root|tmp|usr|Users)/|site-packages|ipykernel_", text)


@notebooks
def test_exactly_the_cells_whose_outputs_differ_between_runs_are_tagged_for_nbval(path):
    """So `pytest --nbval notebooks/` passes, without the file that removes what differs."""
    sanitize = configparser.RawConfigParser()
    sanitize.read(Path(__file__).parent / "sanitize.cfg")
    differs = re.compile("|".join(sanitize[name]["regex"] for name in sanitize.sections()), re.S)
    code = [cell for cell in cells(path) if cell["cell_type"] == "code"]
    tagged = [cell["metadata"].get("tags", []).count("nbval-ignore-output") for cell in code]
    assert tagged == [bool(differs.search(compared(cell["outputs"]))) for cell in code]


def compared(cell_outputs):
    """Return the text of outputs that nbval compares; pictures and tracebacks it does not."""
    parts = [output.get("text", "") for output in cell_outputs]
    for output in cell_outputs:
        parts += [text for kind, text in output.get("data", {}).items() if kind.startswith("text/")]
    return "\n".join(part if isinstance(part, str) else "".join(part) for part in parts)


def test_tutorial_on_statuses_has_a_call_site_of_each_status():
    (path,) = [path for path in PATHS if "where-did-my-call-go" in path.name]
    traces = [output["data"][MIME] for output in outputs(path) if MIME in output.get("data", {})]
    shown = {site["status"] for trace in traces for site in trace["sites"] if "status" in site}
    # A site that was called shows its calls in place of a status.
    assert shown == {status.value for status in Status} - {"kept", "unknown", "fewer"}


TEN_CALLS = """\
import jax
import jupyter_jaxcb as jaxcb
@jaxcb.pure(result="x")
def same(x):
    return x
total = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda i, x: same(x), x))(1.0)"""


@pytest.fixture(scope="module")
def executed(in_process, tmp_path_factory):
    """The path of an executed notebook whose last cell makes ten host calls."""
    folder = tmp_path_factory.mktemp("tutorial")
    path = folder / "ten.ipynb"
    path.write_text(
        json.dumps(
            {
                "cells": [
                    {
                        "cell_type": "code",
                        "execution_count": None,
                        "id": f"cell-{n}",
                        "metadata": {},
                        "outputs": [],
                        "source": source,
                    }
                    for n, source in enumerate(["%load_ext jupyter_jaxcb", TEN_CALLS])
                ],
                "metadata": {"kernelspec": {"display_name": "", "name": "python3"}},
                "nbformat": 4,
                "nbformat_minor": 5,
            }
        )
    )
    options = ["--to", "notebook", "--execute", "--inplace"]
    in_process(["-m", "nbconvert"], *options, path.name, cwd=folder)
    return path


@pytest.mark.long
def test_nbval_detects_a_changed_number_of_calls(in_process, executed):
    assert len([o for o in cells(executed)[1]["outputs"] if MIME in o["data"]]) == 1
    text = executed.read_text()
    assert "10 calls" in text
    changed = executed.with_name("changed.ipynb")
    changed.write_text(text.replace("10 calls", "11 calls"))
    both = ["--nbval", executed.name, changed.name]
    options = ["-p", "no:cacheprovider", "-rA"]
    done = in_process(["-m", "pytest"], *options, *both, cwd=executed.parent, status=1)
    printed = done.stdout + done.stderr
    assert "Cell outputs differ" in printed, printed
    for cell in (f"{executed.name}::Cell 0", f"{executed.name}::Cell 1", "changed.ipynb::Cell 0"):
        assert f"PASSED {cell}" in printed, printed
    assert "FAILED changed.ipynb::Cell 1" in printed, printed
