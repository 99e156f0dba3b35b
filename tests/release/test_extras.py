"""Each extra declares what its `make` target imports and starts, so the first command works."""

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
OWN = {"jupyter_jaxcb", "jupyter_jaxcb_worker", "jupyter_jaxcb_pytest", "tests"}
BEFORE_ANY_ENVIRONMENT = {"pip", "venv"}  # every Python brings these
PROJECT = "jupyter-jaxcb"


def name_of(requirement):
    """The distribution a requirement names, and the extras it asks of it."""
    name, extras = re.match(r"([\w.-]+)(?:\[([^\]]*)\])?", requirement).groups()
    return name.lower().replace("_", "-"), [e.strip() for e in (extras or "").split(",") if e]


def declared(extra, project):
    """The distributions that `pip install jupyter_jaxcb[extra]` names, those of the package too."""
    found = {name_of(one)[0] for one in project["dependencies"]}
    for one in project["optional-dependencies"][extra]:
        name, extras = name_of(one)
        found.add(name)
        for other in extras if name == PROJECT else ():
            found |= declared(other, project)
    return found


def started(tree):
    """The modules that `python -m` starts in `tree`: what follows "-m" in a command."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.List, ast.Tuple, ast.Call)):
            words = node.args if isinstance(node, ast.Call) else node.elts
            texts = [word.value if isinstance(word, ast.Constant) else None for word in words]
            for option, module in itertools.pairwise(texts):
                if option == "-m" and isinstance(module, str):
                    yield module.partition(".")[0]


def imported(tree):
    """The modules that `tree` imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.partition(".")[0]


def programs(path):
    """The Python of a test module, a program, or the cells of a notebook, as syntax trees."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return [ast.parse(text)]
    cells = [c["source"] for c in json.loads(text)["cells"] if c["cell_type"] == "code"]
    plain = [re.sub(r"^\s*[%!].*$", "", "".join(source), flags=re.M) for source in cells]
    return [ast.parse(source) for source in plain]


@functools.cache
def used(path):
    """The modules that `path` imports or starts, but for Python's and those beside it."""
    found = {name for tree in programs(path) for name in (*imported(tree), *started(tree))}
    found -= OWN | BEFORE_ANY_ENVIRONMENT | sys.stdlib_module_names
    return {name for name in found if not (path.parent / f"{name}.py").exists()}


distributions = functools.cache(importlib.metadata.packages_distributions)


def missing(paths, extra, project):
    """The modules of each path that no distribution declared by `extra` brings."""
    known = declared(extra, project)
    found = {}
    for path in paths:
        for module in used(path):
            names = {name_of(one)[0] for one in distributions().get(module, [module])}
            if not names & known:
                found.setdefault(path.name, set()).add(module)
    return found


def project():
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


NOTEBOOKS = sorted((REPOSITORY / "notebooks").glob("*.ipynb"))
BROWSER = sorted((TESTS / "browser").rglob("*.py"))
OTHERS = sorted(set(TESTS.rglob("*.py")) - set(BROWSER))


@pytest.mark.parametrize(
    ("extra", "paths"),
    [("test", OTHERS), ("test", NOTEBOOKS), ("lab", NOTEBOOKS), ("browser", BROWSER)],
    ids=["tests", "notebooks in make test", "notebooks in make lab", "browser tests"],
)
def test_extra_declares_all_that_is_imported_or_started(extra, paths):
    assert paths
    assert missing(paths, extra, project()) == {}


@pytest.mark.parametrize("gone", ["nbconvert>=7", "scipy>=1.11", "jupyter_client>=8"])
def test_requirement_that_is_left_out_is_seen(gone):
    """Another distribution may bring it along, today and on this machine."""
    without = project()
    without["optional-dependencies"]["test"].remove(gone)
    assert missing(OTHERS, "test", without)
