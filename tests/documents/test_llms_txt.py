"""``llms.txt`` lists every page of the documentation, with what it answers."""

import importlib
import re
from posixpath import dirname, join, normpath

import pytest

from .conftest import DOCS, REPOSITORY

TOCTREE = re.compile(r"```\{toctree\}\n(?::\w+:\n)+\n(.*?)```", re.DOTALL)
LINE = re.compile(r"^- \[(.+)\]\((\S+)\.md\): (.+)$", re.MULTILINE)


@pytest.fixture(scope="module")
def texts(pages):
    """The text of every page by its name; included files and notebooks as they are."""
    found = {path.removesuffix(".md"): text for path, text in pages.items()}
    for name, file in (
        ("index", "README"),
        ("changelog", "CHANGELOG"),
        ("contributing", "CONTRIBUTING"),
    ):
        found[name] += (REPOSITORY / f"{file}.md").read_text(encoding="utf-8")
    for notebook in sorted((REPOSITORY / "notebooks").glob("*.ipynb")):
        found[f"tutorials/{notebook.stem}"] = f"# {notebook.stem}\n\nA story.\n"
    return found


@pytest.fixture(scope="module")
def below(texts):
    """The pages below each page in the table of contents."""
    found = {}
    for name, text in texts.items():
        for entries in TOCTREE.findall(text):
            names = [normpath(join(dirname(name), entry)) for entry in entries.split()]
            found[name] = [
                one
                for entry in names
                for one in texts
                if re.fullmatch(entry.replace("*", ".*"), one)
            ]
    return found


@pytest.fixture(scope="module")
def llms(texts, below):
    return importlib.import_module("llms_txt").llms_txt(texts, below)


def test_every_page_is_listed_once_with_an_answer(llms, texts):
    listed = [name for _, name, _ in LINE.findall(llms)]
    assert sorted(listed) == sorted(texts)
    assert len(listed) == llms.count("\n- ")


def test_every_link_leads_to_a_page(llms):
    for _, name, _ in LINE.findall(llms):
        if name.startswith("tutorials/"):
            assert (REPOSITORY / "notebooks" / f"{name.removeprefix('tutorials/')}.ipynb").exists()
        else:
            assert (DOCS / f"{name}.md").exists()
