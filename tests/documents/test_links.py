"""Links in the documents point to existing files and headings, or to the web."""

import json
import re
import urllib.parse
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = [
    *REPOSITORY.glob("*.md"),
    *REPOSITORY.glob("docs/**/*.md"),
    *REPOSITORY.glob("labextension/*.md"),
    *REPOSITORY.glob(".github/**/*.md"),
    *REPOSITORY.glob("notebooks/*.ipynb"),
]
DOCUMENTS = [path for path in DOCUMENTS if not {"_generated", "_build"} & set(path.parts)]
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\[\]]*\]\([^()]*\))*\]\(([^()\s]+)\)")
GENERATED = {"recording.schema.json", "view.schema.json"}


def text_of(path):
    """Return the prose of a document, without its code."""
    if path.suffix == ".ipynb":
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    else:
        text = path.read_text(encoding="utf-8")
    without_blocks = re.sub(r"^(```+|~~~+).*?^\1", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", lambda code: re.sub(r"[\[\]()]", "_", code[0]), without_blocks)


def anchors(path):
    """Return the anchors of all headings, in GitHub's spelling, including included files."""
    headings = re.findall(r"^#+ (.*)$", text_of(path), re.MULTILINE)
    found = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    included = re.findall(r"^```\{include\} (\S+\.md)$", path.read_text(encoding="utf-8"), re.M)
    return found.union(*(anchors(path.parent / name) for name in included if name[0] != "_"))


def links(path):
    text = text_of(path)
    found = LINK.findall(text)
    found += re.findall(
        r"\[!\[[^\]]*\]\(([^()\s]+)\)\]", text
    )  # images inside links, such as badges
    return found + re.findall(r'<(?:img|source)\b[^>]*\b(?:src|srcset)="([^"]+)"', text)


def problem_of(link, path):
    """Return the problem of a link in the document at `path`, or None."""
    parts = urllib.parse.urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if re.fullmatch(r"[\w-]+(\.[\w-]+)+", parts.netloc) else "no address"
    if parts.scheme not in ("", "path"):
        return "neither a file nor a web address"
    target = path.parent / urllib.parse.unquote(parts.path) if parts.path else path
    if target.name in GENERATED:
        return None
    if not target.exists():
        return "no such file"
    if parts.fragment and parts.fragment not in anchors(target):
        return "no such heading"
    return None


@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(REPOSITORY).as_posix()
)
def test_links_have_a_target(path):
    found = [(link, problem_of(link, path)) for link in links(path)]
    assert [(link, problem) for link, problem in found if problem] == []


def test_every_page_is_in_a_toctree():
    """`make docs` checks this too, but `make test` does not run it."""
    docs = REPOSITORY / "docs"
    pages = {path for path in docs.glob("**/*.md") if path in DOCUMENTS}
    tree = {docs / "index.md"}
    for page in pages:
        blocks = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.M | re.S)
        for line in "".join(blocks).splitlines():
            if line and line[0] != ":" and "*" not in line:
                tree.add((page.parent / f"{line}.md").resolve())
    assert pages == tree


def test_linked_terms_are_in_the_glossary():
    glossary = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```\{glossary\}\n(.*?)^```", glossary, re.M | re.S)
    words = set(re.findall(r"^(\S.*)$", block, re.M))
    linked = {
        name or text
        for path in REPOSITORY.glob("docs/**/*.md")
        for text, name in re.findall(r"\{term\}`([^`<]+?)(?:\s*<([^>]+)>)?`", path.read_text())
    }
    assert len(words) > 20
    assert {" ".join(word.split()) for word in linked} - words == set()
