"""Each extra declares all packages that its `make` target imports and starts."""

import ast
import functools
import importlib.metadata
import itertools
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
TESTS = REPOSITORY / "tests"
OURS = {"jupyter_jaxcb", "jupyter_jaxcb_worker", "jupyter_jaxcb_pytest", "tests", "benchmarks"}
ALWAYS_INSTALLED = {"pip", "venv"}  # part of every Python
PROJECT = "jupyter-jaxcb"


def name_of(requirement):
    """Return the distribution and the extras that a requirement names."""
    name, extras = re.match(r"([\w.-]+)(?:\[([^\]]*)\])?", requirement).groups()
    return name.lower().replace("_", "-"), [e.strip() for e in (extras or "").split(",") if e]


def declared(extra, project):
    """Return the requirements of `jupyter_jaxcb[extra]`, including those of the package itself."""
    found = {name_of(requirement)[0] for requirement in project["dependencies"]}
    for requirement in project["optional-dependencies"][extra]:
        name, extras = name_of(requirement)
        found.add(name)
        for other in extras if name == PROJECT else ():
            found |= declared(other, project)
    return found


def started(tree):
    """Yield the modules that commands in `tree` start with `python -m`."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple, ast.Call)):
            words = node.args if isinstance(node, ast.Call) else node.elts
            texts = [word.value if isinstance(word, ast.Constant) else None for word in words]
            for option, module in itertools.pairwise(texts):
                if option == "-m" and isinstance(module, str):
                    yield module.partition(".")[0]


def imported(tree):
    """Yield the modules that `tree` imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def programs(path):
    """Return the syntax trees of a Python file, or of the cells of a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [ast.parse(text)]
    cells = [c["source"] for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    plain = [re.sub(r"^\s*[%!].*$", "", "".join(source), flags=re.M) for source in cells]
    return [ast.parse(source) for source in plain]


@functools.cache
def used(path):
    """Return the third-party modules that `path` imports or starts."""
    found = {name for tree in programs(path) for name in (*imported(tree), *started(tree))}
    found -= OURS | ALWAYS_INSTALLED | sys.stdlib_module_names
    return {name for name in found if not (path.parent / f"{name}.py").exists()}


distributions = functools.cache(importlib.metadata.packages_distributions)


def missing(paths, extra, project):
    """Return the modules of each path that no distribution declared by `extra` provides."""
    known = declared(extra, project)
    found = {}
    for path in paths:
        for module in used(path):
            names = {name_of(package)[0] for package in distributions().get(module, [module])}
            if not names & known:
                found.setdefault(path.name, set()).add(module)
    return found


def project():
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
BROWSER = sorted((TESTS / "browser").rglob("*.py"))
BENCHMARKS = REPOSITORY / "benchmarks"
WATCHED = BENCHMARKS / "watched"  # with requirements of its own
OTHERS = sorted(
    {*TESTS.rglob("*.py"), *BENCHMARKS.rglob("*.py")} - {*BROWSER} - {*WATCHED.rglob("*.py")}
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("extra", "paths"),
    [("test", OTHERS), ("test", NOTEBOOKS), ("lab", NOTEBOOKS), ("browser", BROWSER)],
    ids=["tests", "notebooks in make test", "notebooks in make lab", "browser tests"],
)
def test_extra_declares_all_that_is_imported_or_started(extra, paths):
    assert paths
    assert missing(paths, extra, project()) == {}
