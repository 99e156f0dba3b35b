"""Write each page also as Markdown, with what Sphinx makes of its directives, and ``llms.txt``.

``sphinx -b markdown`` writes them; `make docs` puts them beside the HTML.
"""

from __future__ import annotations

import re
from pathlib import Path

from from_code import write
from llms_txt import llms_txt
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.util.osutil import relative_uri
from sphinx_markdown_builder.translator import MarkdownTranslator, pushing_context

_LOGGER = getLogger(__name__)
_LANGUAGES = {"ipython3": "python", "myst-ansi": "text", "default": "text"}  # known elsewhere


class Translator(MarkdownTranslator):
    """Also links inside of a page, and names languages as other renderers do."""

    @pushing_context
    def visit_reference(self, node):
        """Link to a heading of the same page, too."""
        if "refid" in node:
            node["internal"] = True
        super().visit_reference(node)

    def visit_literal_block(self, node):
        """Name the language, and leave a line free above, which ends a table."""
        node["language"] = _LANGUAGES.get(node.get("language"), node.get("language", "text"))
        self.ensure_eol(2)
        super().visit_literal_block(node)

    def visit_image(self, node):
        """Link to the picture where the HTML has it, once if there is one for each theme."""
        if "only-dark" in node["classes"]:
            return
        _, name = self.builder.env.images[node["uri"]]
        page = f"{self.builder.current_doc_name}.md"
        self.add(f"![{node.get('alt', 'image')}]({relative_uri(page, f'_images/{name}')})")

    def visit_abbreviation(self, node):
        """Keep its text, a star in a signature."""

    depart_abbreviation = visit_abbreviation


def broken_links(page: Path) -> list[str]:
    """Return the links of a page in Markdown that lead to no file or to no place in it."""
    text = page.read_text(encoding="utf-8")
    prose = re.sub(r"^```.*?^```|`[^`]*`", "", text, flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)\s#:]*)(?:#([^)\s]+))?\)", prose)
    return [f"{file}#{place}" for file, place in links if not _exists(page, file, place)]


def _exists(page: Path, file: str, place: str) -> bool:
    target = page.parent / file if file else page
    if not target.exists() or not place or target.suffix != ".md":
        return target.exists()
    text = target.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings}
    return place in slugs or f'<a id="{place}"></a>' in text


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write ``llms.txt`` when the pages are complete, and warn of their broken links."""
    if app.builder.name != "markdown" or error:
        return
    folder = Path(app.outdir)
    paths = {name: folder / f"{name}.md" for name in app.env.found_docs}
    pages = {name: path.read_text(encoding="utf-8") for name, path in paths.items()}
    write(folder / "llms.txt", llms_txt(pages, app.env.toctree_includes))
    for name, path in paths.items():
        for link in broken_links(path):
            _LOGGER.warning("%s.md links to %s, which does not exist", name, link)


def setup(app: Sphinx) -> None:
    """Add the builder; Sphinx calls this once."""
    app.setup_extension("sphinx_markdown_builder")
    app.set_translator("markdown", Translator, override=True)
    app.connect("build-finished", finish)
