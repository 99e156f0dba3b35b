"""Saved outputs are of the JAX that the notebook says, and nbval sees a wrong one."""

import json
import os
import subprocess
import sys

import pytest

from ._saved import MIME, PATHS, cells, recorded, said

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_notebook_says_which_jax_its_host_traces_are_of(path):
    assert recorded(path) == {(said(path), "cpu")}


def test_all_notebooks_are_of_one_jax():
    assert len({said(path) for path in PATHS}) == 1
    assert len(PATHS) >= 11


TEN_CALLS = """\
import jax
import jupyter_jaxcb as jaxcb
@jaxcb.pure(result="x")
def same(x):
    return x
total = jax.jit(lambda x: jax.lax.fori_loop(0, 10, lambda i, x: same(x), x))(1.0)"""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
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
    convert = ["-m", "nbconvert", "--to", "notebook", "--execute", "--inplace", path.name]
    code, printed = ran(convert, folder)
    assert code == 0, printed
    return path


def ran(arguments, folder):
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout + done.stderr


def test_count_that_is_changed_in_a_saved_output_fails(executed):
    assert len([o for o in cells(executed)[1]["outputs"] if MIME in o["data"]]) == 1
    text = executed.read_text()
    assert "10 calls" in text
    changed = executed.with_name("changed.ipynb")
    changed.write_text(text.replace("10 calls", "11 calls"))
    nbval = ["-m", "pytest", "-p", "no:cacheprovider", "-rA", "--nbval"]
    code, printed = ran([*nbval, executed.name, changed.name], executed.parent)
    assert code == 1, printed
    assert "Cell outputs differ" in printed, printed
    for cell in (f"{executed.name}::Cell 0", f"{executed.name}::Cell 1", "changed.ipynb::Cell 0"):
        assert f"PASSED {cell}" in printed, printed
    assert "FAILED changed.ipynb::Cell 1" in printed, printed
