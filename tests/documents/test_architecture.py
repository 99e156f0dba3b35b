"""The tour of the architecture runs; its pictures and tables match the code."""

import doctest
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGE = REPOSITORY / "jupyter_jaxcb"


def modules_named(text):
    """Yield paths of modules in backticks; a bare `_name.py` is in the folder named before it."""
    folder = ""
    for path in re.findall(r"`((?:[\w.-]+/)*[\w.-]+\.(?:py|ts|md|json|ipynb|toml))`", text):
        folder = path.rpartition("/")[0] or folder
        yield path if "/" in path else f"{folder}/{path}" if path[0] == "_" else path


def exists(path):
    places = (REPOSITORY, PACKAGE, REPOSITORY / "labextension")
    return any((place / path).exists() for place in places)


@pytest.mark.parametrize(
    "page",
    [
        "CONTRIBUTING.md",
        "docs/architecture.md",
        "docs/extending.md",
        "docs/jax-facts.md",
        "docs/schema.md",
    ],
)
def test_named_modules_exist(page):
    text = (REPOSITORY / page).read_text()
    shown = re.findall(r"^# jupyter_jaxcb/(\S+)$", text, re.MULTILINE)
    missing = [path for path in modules_named(text) if not exists(path) and path not in shown]
    assert not missing


def test_tour_runs_with_the_values_it_shows():
    page = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```pycon\n(.*?)^```", page, re.MULTILINE | re.DOTALL))
    tour = doctest.DocTestParser().get_doctest(code, {}, "architecture.md", None, 0)
    output = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    failed, ran = runner.run(tour, out=output.append)
    assert ran > 20 and not failed, "".join(output)
