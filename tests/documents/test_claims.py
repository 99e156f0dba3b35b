"""What the documents say can be typed is there: targets, names, magics, options; Python runs."""

import contextlib
import io
import json
import re
from pathlib import Path

import jax
import pytest

import jupyter_jaxcb

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = [
    path
    for pattern in ("*.md", "docs/**/*.md", "labextension/*.md", ".github/**/*.md")
    for path in sorted(REPOSITORY.glob(pattern))
    if "_generated" not in path.parts
]
documents = pytest.mark.parametrize(
    "text",
    [path.read_text(encoding="utf-8") for path in DOCUMENTS],
    ids=[path.relative_to(REPOSITORY).as_posix() for path in DOCUMENTS],
)


def typed(text):
    """The code of a document: its blocks line by line, and what stands in backticks."""
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()] + re.findall(
        r"`([^`]+)`", prose
    )


def targets():
    """What ``make`` makes, and what ``npm run`` runs."""
    rules = (REPOSITORY / "Makefile").read_text()
    scripts = json.loads((REPOSITORY / "labextension" / "package.json").read_text())["scripts"]
    return set(re.findall(r"^([a-z][\w-]*):(?!=)", rules, re.MULTILINE)), set(scripts)


def lost_commands(text):
    """Commands of a document that there are not."""
    make, npm = targets()
    for line in typed(text):
        for name in re.findall(r"(?:^|[;&] )\s*make ([a-z][\w-]*)", line):
            if name not in make:
                yield f"make {name}"
        for name in re.findall(r"npm run (\w+)", line):
            if name not in npm:
                yield f"npm run {name}"


def lost_names(text):
    """Public names of a document that there are not."""
    for line in typed(text):
        for name in re.findall(r"\b(?:jaxcb|jupyter_jaxcb)\.([A-Za-z]\w*)", line):
            modules = {"diagnostics", "host_callback", "migrate", "recording"}
            modules |= {"report", "stack", "testing"}
            if name not in modules and not hasattr(jupyter_jaxcb, name):
                yield name


def lost_magics(text, magics):
    """Magics and options of a document that there are not."""
    for line in typed(text):
        for name, rest in re.findall(r"%%?(jax_\w+)([^%`]*)", line):
            if name not in magics:
                yield f"%{name}"
                continue
            parser = getattr(magics[name], "parser", None)
            known = parser.format_usage() if parser else ""
            for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", rest):
                if not re.search(rf"\[{option}\b(?!-)", known):
                    yield f"%{name} {option}"


@documents
def test_command_that_is_named_exists(text):
    assert list(lost_commands(text)) == []


@documents
def test_name_that_is_named_exists(text):
    assert list(lost_names(text)) == []


@documents
def test_magic_that_is_named_exists_with_its_options(text, from_code):
    assert list(lost_magics(text, from_code.all_magics())) == []


def test_what_is_not_there_is_seen(from_code):
    magics = from_code.all_magics()
    assert list(lost_commands("`make nothing`")) == ["make nothing"]
    assert list(lost_names("```python\njaxcb.nothing(x)\n```")) == ["nothing"]
    assert list(lost_magics("`%jax_nothing`", magics)) == ["%jax_nothing"]
    assert list(lost_magics("`%jax_record --valu`", magics)) == ["%jax_record --valu"]


def blocks():
    """The Python of README and guide, each block of which runs by itself."""
    for path in [REPOSITORY / "README.md", *sorted(REPOSITORY.glob("docs/guide/*.md"))]:
        text = path.read_text(encoding="utf-8")
        for code in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            yield pytest.param(code, id=f"{path.stem}: {code.splitlines()[-1][:30]}")


@pytest.mark.parametrize("code", list(blocks()))
def test_python_runs_and_prints_what_it_says(code):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
        jax.effects_barrier()
    said = re.findall(r"^print\(.*#.*?(\d+)$", code, re.MULTILINE)
    assert re.findall(r"^\d+$", printed.getvalue(), re.MULTILINE) == said


def test_readme_and_guide_have_python():
    assert len(list(blocks())) >= 4
