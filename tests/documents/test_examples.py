"""The Python of the pages runs, and a module that they show keeps to the arrows."""

import re
import sys
import types

import pytest

from jupyter_jaxcb import recording

PACKAGE = "jupyter_jaxcb"


def blocks(text):
    """The blocks of Python on a page, each with the module that it is, if it is one."""
    for code in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        first = re.match(rf"# {PACKAGE}/(\S+)\.py\n", code)
        yield (first[1] if first else None), code


def module(name, code, monkeypatch):
    """What `code` is as a module of the package, there until the test ends."""
    made = types.ModuleType(f"{PACKAGE}.{name.replace('/', '.')}")
    made.__package__ = made.__name__.rpartition(".")[0]
    made.__file__ = f"{name}.py"
    monkeypatch.setitem(sys.modules, made.__name__, made)
    exec(compile(code, made.__file__, "exec"), vars(made))
    return made


@pytest.mark.parametrize(
    "page",
    [
        "extending.md",
        "reference/facts.md",
        "reference/host-callback.md",
        "reference/index.md",
    ],
)
def test_python_of_a_page_runs(page, pages, layers, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    before = dict(recording.FORMATS)
    names = {"__name__": "page"}
    try:
        for of_module, code in blocks(pages[page]):
            if of_module is None:
                exec(compile(code, page, "exec"), names)
                continue
            layer = of_module.rpartition("/")[0]
            assert layers.broken_arrows(code, layer) == []
            made = module(of_module, code, monkeypatch)
            for name, thing in vars(made).items():  # as its __init__ would have it
                if getattr(thing, "__module__", "") == made.__name__ and name[0] != "_":
                    for room in (made.__package__, ".".join(made.__package__.split(".")[:2])):
                        monkeypatch.setattr(sys.modules[room], name, thing, raising=False)
    finally:
        recording.FORMATS.clear()
        recording.FORMATS.update(before)


def test_every_page_with_python_is_run(pages):
    """Those of the guide by test_claims, as each of their blocks stands for itself."""
    run = test_python_of_a_page_runs.pytestmark[0].args[1]
    with_python = {page for page, text in pages.items() if list(blocks(text))}
    assert {page for page in with_python if not page.startswith("guide/")} == set(run)
