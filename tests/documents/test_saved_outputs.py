"""Saved outputs are from the version of JAX that the notebook names; nbval finds a wrong output."""

import json

import pytest

from ._saved import MIME, PATHS, cells, recorded_versions, stated_version


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebook_names_the_jax_of_its_host_traces(path):
    assert recorded_versions(path) == {(stated_version(path), "cpu")}


def test_all_notebooks_are_from_one_jax():
    assert len({stated_version(path) for path in PATHS}) == 1
    assert len(PATHS) >= 11


TEN_CALLS = """\
import jax
import jupyter_jaxcb as jaxcb
@jaxcb.pure(result="x")
def same(x):
    return x
total = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda i, x: same(x), x))(1.0)"""


@pytest.fixture(scope="module")
def executed(in_process, tmp_path_factory):
    """A notebook whose last cell makes ten host calls, with its outputs."""
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
    how = ["--to", "notebook", "--execute", "--inplace"]
    in_process(["-m", "nbconvert"], *how, path.name, cwd=folder)
    return path


def test_changed_count_in_a_saved_output_fails(in_process, executed):
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
