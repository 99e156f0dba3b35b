"""Python blocks in README and documentation run; modules shown on a page respect the layers."""

import contextlib
import io
import linecache
import re
import sys
import types

import jax
import pytest
from IPython.core.interactiveshell import InteractiveShell

from jupyter_jaxcb import recording
from jupyter_jaxcb.register import Callback
from jupyter_jaxcb.testing import host_calls as counting_host_calls

from ._blocks import REPOSITORY, SEQUENTIAL, python_blocks, skipped_blocks, standalone_documents

PACKAGE = "jupyter_jaxcb"


def standalone_blocks():
    for name, text in standalone_documents().items():
        for number, code in enumerate(python_blocks(text)):
            yield pytest.param(name, code, id=f"{name}-{number}")


@pytest.mark.parametrize(("page", "code"), list(standalone_blocks()))
def test_block_runs_alone_and_prints_the_numbers_in_its_comments(page, code):
    printed, names = io.StringIO(), {"__name__": "page"}
    with contextlib.redirect_stdout(printed):
        exec(compile(code, page, "exec"), names)
        jax.effects_barrier()
    expected = re.findall(r"^print\(.*#.*?(\d+)$", code, re.MULTILINE)
    assert re.findall(r"^\d+$", printed.getvalue(), re.MULTILINE) == expected
    for name, test in list(names.items()):
        if name.startswith("test_"):
            with counting_host_calls() as host_calls:
                test(host_calls)


def test_skipped_block_compiles_and_its_page_says_so():
    found = 0
    for name, text in standalone_documents().items():
        for before, code in skipped_blocks(text):
            compile(code, name, "exec")
            assert "not run" in before
            found += 1
    assert found == 4


@pytest.fixture
def shell():
    """An IPython shell with the extension loaded."""
    shell = InteractiveShell()
    shell.run_line_magic("load_ext", PACKAGE)
    yield shell
    shell.run_line_magic("unload_ext", PACKAGE)
    InteractiveShell.clear_instance()


def cells_of_the_magic():
    for name, text in standalone_documents().items():
        found = re.findall(r"^```(?:text)?\n(%%jax_callback .*?)^```", text, re.M | re.S)
        for number, cell in enumerate(found):
            yield pytest.param(cell, id=f"{name}-{number}")


@pytest.mark.parametrize("cell", list(cells_of_the_magic()))
def test_cell_of_the_magic_registers_its_functions(cell, shell):
    assert shell.run_cell("import numpy as np, jax.numpy as jnp").success
    assert shell.run_cell(cell).success
    (first, *_) = re.findall(r"^def (\w+)", cell, re.MULTILINE)
    assert isinstance(shell.user_ns[first], Callback)


def test_readme_shows_the_trace_of_its_cell(shell, capsys):
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    (code,) = python_blocks(readme)
    (trace,) = re.findall(r"^```text\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    assert shell.run_cell(code).success
    times = r"(?: ·|  )? *\d[\d.]* [mµn]?s(?:: host functions .*)?\b|(?: ·) host functions .*"
    shown = re.sub(times, "", capsys.readouterr().out)
    assert trace in shown + "\n"


def blocks_and_modules(text):
    """Yield the blocks on a page, each with the path of the module that it shows, or None."""
    for code in python_blocks(text):
        first = re.match(rf"# {PACKAGE}/(\S+)\.py\n", code)
        yield (first[1] if first else None), code


def add_module(name, code, monkeypatch):
    """Run `code` as a module of the package, which exists until the test ends."""
    module = types.ModuleType(f"{PACKAGE}.{name.replace('/', '.')}")
    module.__package__ = module.__name__.rpartition(".")[0]
    module.__file__ = f"{name}.py"
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, module.__file__, "exec"), vars(module))
    return module


@pytest.mark.parametrize("page", SEQUENTIAL)
def test_blocks_of_a_page_run_in_order(page, pages, layers, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = dict(recording.FORMATS)
    names = {"__name__": "page"}
    try:
        for path, code in blocks_and_modules(pages[page]):
            if path is None:
                lines = code.splitlines(keepends=True)
                monkeypatch.setitem(linecache.cache, page, (len(code), None, lines, page))
                exec(compile(code, page, "exec"), names)
                continue
            layer = path.rpartition("/")[0]
            assert layers.forbidden_imports(code, layer) == []
            module = add_module(path, code, monkeypatch)
            for name, value in vars(module).items():  # as if the __init__ of its folder imported it
                if getattr(value, "__module__", "") == module.__name__ and name[0] != "_":
                    for folder in (module.__package__, ".".join(module.__package__.split(".")[:2])):
                        monkeypatch.setattr(sys.modules[folder], name, value, raising=False)
    finally:
        recording.FORMATS.clear()
        recording.FORMATS.update(before)
