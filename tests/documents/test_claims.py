"""The make targets, names, magics and options that the documents mention exist."""

import contextlib
import functools
import io
import json
import re
from pathlib import Path

import pytest

import jupyter_jaxcb
from jupyter_jaxcb.command import main

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


@documents
def test_named_commands_exist(text):
    assert list(missing_commands(text)) == []


@documents
def test_named_public_names_exist(text):
    assert list(missing_names(text)) == []


@documents
def test_named_magics_exist_with_their_options(text, from_code):
    assert list(missing_magics(text, from_code.all_magics())) == []
