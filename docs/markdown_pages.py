"""Write each page also as Markdown, with what Sphinx makes of its directives, and ``llms.txt``.

``sphinx -b markdown`` writes them; `make docs` puts them beside the HTML.
"""

from __future__ import annotations

from pathlib import Path

from from_code import write
from llms_txt import llms_txt
from sphinx.application import Sphinx
from sphinx_markdown_builder.translator import MarkdownTranslator, pushing_context

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

    def visit_abbreviation(self, node):
        """Keep its text, a star in a signature."""

    depart_abbreviation = visit_abbreviation


def write_llms(app: Sphinx, error: Exception | None) -> None:
    """Write ``llms.txt`` when the pages are complete."""
    if app.builder.name != "markdown" or error:
        return
    folder = Path(app.outdir)
    pages = {one: (folder / f"{one}.md").read_text(encoding="utf-8") for one in app.env.found_docs}
    write(folder / "llms.txt", llms_txt(pages, app.env.toctree_includes))


def setup(app: Sphinx) -> None:
    """Add the builder; Sphinx calls this once."""
    app.setup_extension("sphinx_markdown_builder")
    app.set_translator("markdown", Translator, override=True)
    app.connect("build-finished", write_llms)
