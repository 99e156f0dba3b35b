"""The table of what a file contains, each cell of it tried."""

import gzip
import json
import re

import pytest

# What must not be in a file where the table has no "yes": a value that no line of code has, the
# folder of the program, a line that makes a call, and the text of an exception.
VALUE, LINE, MESSAGE = "1234.5", "float32(sign * 2469 / 2)", "no entry for hunter"
PROGRAM = f"""\
import numpy as np
import jax
import jupyter_jaxcb as jaxcb
@jaxcb.pure(result="x")
def lookup(x):
    if x > 0:
        raise KeyError("{MESSAGE}")
    return 2 * x
run = jax.jit(lookup)
for sign in (-1, 1):
    try:
        y = run(np.{LINE})
        y.block_until_ready()
    except (ValueError, jax.errors.JaxRuntimeError):
        pass"""
WATCHED = f"""\
%%jax_watch
def twice(x):
    y = 2 * x  # {LINE}
    return y
twice(jax.numpy.float32(2469 / 4));"""
ROW = re.compile(r"^\| (.+?) \| (yes|no) \| (yes|no) \| (yes|no) \| (yes|no) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def table(pages):
    """The rows of the table: what is written, and for each column whether it says yes."""
    (_, section) = pages["guide/save-and-export.md"].split("## What is saved when", 1)
    found = {name: [word == "yes" for word in words] for name, *words in ROW.findall(section)}
    assert len(found) == 8
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("elsewhere")


def contents(text, folder):
    """Return what `text` contains, in the order of the columns of the table."""
    return [part in text for part in (VALUE, LINE, str(folder), MESSAGE)]


@pytest.fixture(scope="module")
def outputs(in_process, folder):
    """The saved outputs of the cells of an executed notebook, as text."""
    asked = PROGRAM.replace("lookup", "asked")
    sources = ["%load_ext jupyter_jaxcb", PROGRAM, f"%%jax_record --values\n{asked}", WATCHED]
    cells = [
        {"cell_type": "code", "execution_count": None, "id": f"c{n}", "metadata": {}, "outputs": [],
         "source": source}
        for n, source in enumerate(sources)
    ]  # fmt: skip
    kernel = {"kernelspec": {"display_name": "", "name": "python3"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    path = folder / "run.ipynb"
    path.write_text(json.dumps(notebook))
    options = ["--to", "notebook", "--execute", "--inplace"]
    in_process(["-m", "nbconvert"], *options, path.name, cwd=folder)
    saved = json.loads(path.read_text())["cells"]
    return [json.dumps(cell["outputs"], ensure_ascii=False) for cell in saved]


@pytest.mark.parametrize(
    ("place", "row"),
    [
        (1, "a notebook, by default"),
        (2, "a notebook, with `--values`"),
        (3, "a notebook, the table of `%%jax_watch`"),
    ],
)
def test_saved_notebook_contains_what_the_table_says(place, row, outputs, table, folder):
    assert contents(outputs[place], folder) == table[row]


@pytest.mark.parametrize(
    ("suffix", "row"),
    [
        (".html", "a page (`.html`)"),
        (".jaxcb", "`.jaxcb`, `.json`"),
        (".json", "`.jaxcb`, `.json`"),
        (".txt", "`.txt`, `.md`, `.sites.json`"),
        (".md", "`.txt`, `.md`, `.sites.json`"),
        (".sites.json", "`.txt`, `.md`, `.sites.json`"),
        (".perfetto.json", "`.perfetto.json`, `.trace.json`"),
        (".csv", "`.csv`"),
    ],
)
def test_file_of_a_script_contains_what_the_table_says(suffix, row, table, folder, in_process):
    (folder / "program.py").write_text(PROGRAM)
    path = folder / f"run{suffix}"
    in_process(["-m", "jupyter_jaxcb"], "run", "-o", path, folder / "program.py")
    written = path.read_bytes()
    text = gzip.decompress(written) if suffix == ".jaxcb" else written
    assert contents(text.decode(errors="replace"), folder) == table[row]


def test_page_without_sample_values_has_none(folder, in_process):
    (folder / "without.py").write_text(
        PROGRAM.replace(
            "for sign", "recorder = jaxcb.record(sample_values=False)\nfor sign"
        ).replace("    try:", "    try:\n      with recorder as r:")
        + f"\nr.recording.save({str(folder / 'without.html')!r})"
    )
    in_process(folder / "without.py")
    assert contents((folder / "without.html").read_text(), folder)[0] is False
