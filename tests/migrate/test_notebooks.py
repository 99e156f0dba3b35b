"""Migrating notebooks: cells with magics; all other bytes of the JSON file are kept."""

import json

import hypothesis
import hypothesis.strategies as st
import pytest

from jupyter_jaxcb import migrate
from jupyter_jaxcb.migrate._notebook import spans

OLD = "from jax.experimental import host_callback as hcb"
NEW = "from jupyter_jaxcb import host_callback as hcb"


def code(*lines, **more):
    return {"cell_type": "code", "source": list(lines), "outputs": [], **more}


def notebook(*cells):
    return {"cells": list(cells), "metadata": {"é": 1e3}, "nbformat": 4, "nbformat_minor": 5}


@pytest.fixture
def file(tmp_path):
    """Write JSON, or plain text, with ``file(value, **layout)``, which returns the path."""

    def write(value, **layout):
        path = tmp_path / "notebook.ipynb"
        text = value if isinstance(value, str) else json.dumps(value, **layout)
        path.write_bytes(text.encode())
        return path

    return write


LAYOUTS = [
    {"indent": 1, "ensure_ascii": False},
    {"indent": 4},
    {},
    {"separators": (",", ":")},
    {"indent": "\t", "sort_keys": True},
]
layouts = pytest.mark.parametrize("layout", LAYOUTS, ids=str)


@layouts
def test_import_is_rewritten_and_every_other_byte_is_kept(file, layout):
    def document(line):
        return notebook(
            {"cell_type": "markdown", "source": [OLD]},
            code("x = 'é'\n", f"{line}  # é\n", "print(hcb)", execution_count=1),
            code(),
        )

    path = file(document(OLD), **layout)
    assert migrate.read(path).write()
    assert path.read_bytes().decode() == json.dumps(document(NEW), **layout)


@layouts
def test_cell_that_grows_keeps_its_layout(file, layout):
    old = ["import os\n", "from jax.experimental import host_callback, maps\n", "maps"]
    new = ["import os\n", "from jupyter_jaxcb import host_callback\n",
           "from jax.experimental import maps\n", "maps"]  # fmt: skip
    path = file(notebook(code("1"), code(*old), code("2")), **layout)
    migrate.read(path).write()
    assert path.read_text() == json.dumps(notebook(code("1"), code(*new), code("2")), **layout)


def test_source_may_be_one_string(file):
    cell = {"cell_type": "code", "source": f"x = 1\n{OLD}\n"}
    path = file(notebook(cell), indent=1)
    migrate.read(path).write()
    cell["source"] = f"x = 1\n{NEW}\n"
    assert path.read_text() == json.dumps(notebook(cell), indent=1)


MAGICS = {
    "line magics": ["%matplotlib inline\n", "!pip list\n", "?print\n", "print??\n", f"{OLD}\n",
                    "files = !ls\n", "t = %timeit -o 1\n", "if True:\n", "    %time x = 1\n"],
    "cell magic": ["%%time\n", f"{OLD}\n", "x = 1"],
    "our magic": ["\n", "%%jax_callback pure --result x\n", f"{OLD}\n", "def f(x): return x\n"],
    "a magic before modulo": ["%pwd\n", f"{OLD}\n", "x = (5\n", "     % 3)\n"],
    "modulo at the beginning of a line": [f"{OLD}\n", "x = (5\n", "     % 3)\n", "%pwd\n"],
}  # fmt: skip


@pytest.mark.parametrize("lines", MAGICS.values(), ids=MAGICS)
def test_import_among_magics_is_rewritten(file, lines):
    path = file(notebook(code(*lines)), indent=1)
    source = migrate.read(path)
    assert source.problems == []
    assert [use.what for part in source.parts for use in part.uses()] == ["import"]
    source.write()
    new = [line.replace(OLD, NEW) for line in lines]
    assert json.loads(path.read_text()) == notebook(code(*new))


@pytest.mark.parametrize("magic", ["%%bash", "%%javascript", "%%latex"])
def test_cells_in_other_languages_are_left_alone(file, magic):
    path = file(notebook(code(f"{magic}\n", "for f in *; do echo $f; done\n"), code(OLD)), indent=1)
    source = migrate.read(path)
    assert source.problems == []
    assert [part.cell for part in source.parts] == [1]


def test_names_imported_in_one_cell_are_known_in_the_next(file):
    source = migrate.read(file(notebook(code(OLD), code("x = 1\n", "hcb.id_print(x)")), indent=1))
    text = migrate.report(source)
    assert "2 uses of host_callback" in text
    assert "  cell 2, line 2: id_print: hcb.id_print(x)" in text


def test_broken_cell_is_reported_and_the_others_are_read(file):
    path = file(notebook(code("x = 1\n", "def f(:\n"), code(OLD)), indent=1)
    source = migrate.read(path)
    assert source.problems == [f"{path}: skipped cell 1, line 2: invalid syntax."]
    assert source.write()
    assert json.loads(path.read_text())["cells"][1]["source"] == [NEW]


BROKEN = {
    "no JSON": ("{", "it is not JSON"),
    "empty": ("", "it is not JSON"),
    "a list": ("[]", "no list of cells"),
    "an object": ("{}", "no list of cells"),
    "cells that are not a list": ('{"cells": 3}', "no list of cells"),
    "nbformat 3": ('{"worksheets": [], "nbformat": 3}', "nbconvert"),
}


@pytest.mark.parametrize(("text", "words"), BROKEN.values(), ids=BROKEN)
def test_file_that_is_not_a_notebook_is_refused(file, text, words):
    path = file(text)
    with pytest.raises(migrate.MigrationError, match="it is not a notebook") as caught:
        migrate.read(path)
    assert words in str(caught.value)


@pytest.mark.parametrize("cell", [3, {}, {"cell_type": "code"}, {"cell_type": "code", "source": 3}])
def test_invalid_cells_are_skipped(file, cell):
    source = migrate.read(file(notebook(cell, code(OLD)), indent=1))
    assert [part.cell for part in source.parts] == [1]


trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


@hypothesis.settings(max_examples=150)
@hypothesis.given(trees, st.sampled_from(LAYOUTS[:4]))
def test_every_value_is_found_at_its_position(value, layout):
    text = f" {json.dumps(value, **layout)}\n"
    for path, span in spans(text).items():
        expected = value
        for key in path:
            expected = expected[key]
        assert json.loads(text[span.start : span.end]) == expected


def test_jax_imported_in_any_earlier_cell_is_not_imported_again(file):
    cells = (
        code("import jax"),
        code("x = 1"),
        code("import jax.experimental.host_callback\n", "jax.numpy.ones(3)"),
    )
    path = file(notebook(*cells), indent=1)
    migrate.read(path).write()
    cells[2]["source"][0] = "import jupyter_jaxcb.host_callback\n"
    assert json.loads(path.read_text()) == notebook(*cells)
