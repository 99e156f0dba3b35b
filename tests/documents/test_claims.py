"""The make targets, names, magics and options that the documents mention exist."""

import argparse
import contextlib
import functools
import io
import json
import re
import tomllib
from pathlib import Path

import pytest

import jupyter_jaxcb
from jupyter_jaxcb.command import main
from jupyter_jaxcb.command._watch import add_watch

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for pattern in ("*.md", "docs/**/*.md", "labextension/*.md", ".github/**/*.md")
    for path in sorted(REPOSITORY.glob(pattern))
    if not {"_generated", "_build"} & set(path.parts)
]
documents = pytest.mark.parametrize(
    "text",
    [path.read_text(encoding="utf-8") for path in DOCUMENTS],
    ids=[path.relative_to(REPOSITORY).as_posix() for path in DOCUMENTS],
)


def code_of(text):
    """Return the code of a document: the lines of its blocks, and the text in backticks."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()] + re.findall(
        r"`([^`]+)`", prose
    )


def targets():
    """Return the targets of ``make`` and the scripts of ``npm run``."""
    rules = (REPOSITORY / "Makefile").read_text()
    scripts = json.loads((REPOSITORY / "labextension" / "package.json").read_text())["scripts"]
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", rules, re.MULTILINE)), set(scripts)


def missing_commands(text):
    """Yield commands of a document that do not exist."""
    make, npm = targets()
    for line in code_of(text):
        for name in re.findall(r"(?:^|[;&] )\s*make ([a-z][\w-]*)", line):
            if name not in make:
                yield f"make {name}"
        for name in re.findall(r"npm run (\w+)", line):
            if name not in npm:
                yield f"npm run {name}"


def missing_names(text):
    """Yield public names of a document that do not exist."""
    for line in code_of(text):
        for name in re.findall(r"\b(?:jaxcb|jupyter_jaxcb)\.([A-Za-z]\w*)", line):
            modules = {"diagnostics", "host_callback", "recording"}
            modules |= {"report", "stack", "testing"}
            if name not in modules and not hasattr(jupyter_jaxcb, name):
                yield name


def missing_magics(text, magics):
    """Yield magics and options of a document that do not exist."""
    for line in code_of(text):
        for name, rest in re.findall(r"%%?(jax_\w+)([^%`]*)", line):
            if name not in magics:
                yield f"%{name}"
                continue
            parser = getattr(magics[name], "parser", None)
            known = parser.format_usage() if parser else ""
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", rest):
                if not re.search(rf"\[{option}\b(?!-)", known):
                    yield f"%{name} {option}"


def missing_options(text):
    """Yield options of ``python -m jupyter_jaxcb`` in a document that do not exist."""
    for line in code_of(text):
        found = re.search(r"-m jupyter_jaxcb (run|export)\b([^#|]*)", line)
        command, rest = found.groups() if found else ("", "")
        of_the_command = re.split(r"\S+\.py\b|-m \S+", rest)[0]  # those of the script follow
        for option in re.findall(r"(?<!\S)--[a-z][\w-]*", of_the_command):
            if option not in options_of(command):
                yield f"{command} {option}"


@functools.cache
def options_of(command):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([command, "--help"])
    return set(re.findall(r"(?<![\w-])--[a-z][\w-]*", printed.getvalue()))


@documents
def test_named_options_of_the_command_exist(text):
    assert list(missing_options(text)) == []


def test_missing_option_of_the_command_is_found():
    assert list(missing_options("`python -m jupyter_jaxcb run --save x --stop a.py --own`")) == [
        "run --save"
    ]


def test_page_of_values_names_every_option_of_watching_a_script():
    page = (REPOSITORY / "docs" / "guide" / "watch-values.md").read_text("utf-8")
    (listed,) = re.findall(r"Its options are (.*?)\. ", page, re.DOTALL)
    parser = argparse.ArgumentParser(add_help=False)
    add_watch(parser)
    known = {name for action in parser._actions for name in action.option_strings}
    assert set(re.findall(r"--[a-z-]+", listed)) == known - {"--watch"}


@documents
def test_named_commands_exist(text):
    assert list(missing_commands(text)) == []


@documents
def test_named_public_names_exist(text):
    assert list(missing_names(text)) == []


@documents
def test_named_magics_exist_with_their_options(text, from_code):
    assert list(missing_magics(text, from_code.all_magics())) == []


def test_missing_commands_names_and_magics_are_found(from_code):
    magics = from_code.all_magics()
    assert list(missing_commands("`make nothing`")) == ["make nothing"]
    assert list(missing_names("```python\njaxcb.nothing(x)\n```")) == ["nothing"]
    assert list(missing_magics("`%jax_nothing`", magics)) == ["%jax_nothing"]
    assert list(missing_magics("`%jax_record --valu`", magics)) == ["%jax_record --valu"]


def named_extras(text):
    return set(re.findall(r"pip install '(?:jupyter_jaxcb|\.)\[(\w+)\]'", text))


def test_extras_in_documents_and_messages_are_those_of_pyproject():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    sources = sorted((REPOSITORY / "jupyter_jaxcb").glob("**/*.py"))
    named = {path: named_extras(path.read_text("utf-8")) for path in [*DOCUMENTS, *sources]}
    for extras in named.values():
        assert extras <= set(project["optional-dependencies"])
    compiled = REPOSITORY / "jupyter_jaxcb" / "capabilities" / "compiled" / "__init__.py"
    guide = REPOSITORY / "docs" / "guide" / "compiled-callbacks.md"
    assert named[compiled] == named[guide] == {"numba"}


@pytest.mark.parametrize("page", ["README.md", "docs/installation.md", "docs/limits.md"])
def test_page_names_the_versions_of_pyproject(page):
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    pythons = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    (jax,) = re.findall(r"^jax>=(\d+\.\d+)", "\n".join(project["dependencies"]), re.MULTILINE)
    text = (REPOSITORY / page).read_text("utf-8")
    assert f"Python {pythons[0]} to {pythons[-1]}" in text
    assert re.search(rf"JAX {re.escape(jax)} (to|or later)", text)


LABELS = (
    "Compare with…",
    "Insert %jax_check",
    "Jump to first",
    "Pin this run instead",
    "Pin to compare",
    "Show Badges in the Code",
    "Show JAX Callbacks Panel",
    "Unpin",
    "profile this cell",
    "write it into the cell",
)


@pytest.mark.parametrize("label", LABELS)
def test_label_on_the_pages_is_that_of_the_front_end(label, pages):
    sources = sorted((REPOSITORY / "labextension" / "src").glob("**/*.ts"))
    assert any(f"*{label}*" in text for text in pages.values())
    assert any(label in path.read_text("utf-8") for path in sources)


def test_figures_of_the_readme_are_those_of_the_benchmarks():
    bullet = (REPOSITORY / "README.md").read_text("utf-8").split("* **Fast.**")[1].split("* **")[0]
    table = (REPOSITORY / "docs" / "benchmarks.md").read_text("utf-8")
    rows = re.findall(r"^\| `(?:pure` call|vmap` with).*\| ([\d., ]+) [µm]s", table, re.MULTILINE)
    expected = [float(number) for row in rows[:2] for number in row.split(",")]
    shown = re.findall(r"takes? (\d+) [µm]s", bullet)
    assert [float(number) for number in shown] == expected
