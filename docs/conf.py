"""Sphinx configuration. ``make docs`` builds the pages of this folder and fails on warnings."""

import logging
import re
import sys
from importlib.metadata import version as installed
from pathlib import Path

from ipython_pygments_lexers import IPython3Lexer
from pygments.token import Comment

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

# These modules are in this folder, so they are importable only from here on.
from from_code import write_pages  # noqa: E402
from json_schema import write_schema  # noqa: E402
from status_tables import write_statuses  # noqa: E402
from tutorial_pages import write_tutorials  # noqa: E402
from view_schema import write_view  # noqa: E402

write_pages(HERE / "_generated")
write_schema(HERE / "_generated")
write_view(HERE / "_generated")
write_statuses(HERE / "_generated")
write_tutorials(HERE.parent / "notebooks", HERE / "tutorials")

project = "jupyter_jaxcb"
author = "The jupyter_jaxcb developers"
project_copyright = author
version = release = installed("jupyter_jaxcb")

extensions = [
    "myst_nb",  # includes myst_parser
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "markdown_pages",  # in this folder
]
exclude_patterns = ["_build", "_generated", "pictures"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
# `record` in a docstring links to the documented object of this name; any other name is code.
default_role = "py:obj"
autodoc_member_order = "bysource"
# Types come from the annotations and are shown beside the documented arguments.
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_use_rtype = False  # the text of "Returns:" is a sentence; what precedes a colon is no type
add_module_names = False
python_use_unqualified_type_names = True

# The tutorials are shown with their saved outputs and never run here. myst-nb prefers text/html,
# so a host trace is the table of the saved notebook.
nb_execution_mode = "off"
nb_merge_streams = True
# In the pages as Markdown, a host trace is its text.
nb_mime_priority_overrides = [
    ("markdown", "text/plain", 10),
    ("markdown", "image/png", 20),
]

markdown_anchor_signatures = True

# The prompts of pycon and IPython are not copied.
copybutton_prompt_text = r">>> |\.\.\. |In \[\d*\]: |\$ "
copybutton_prompt_is_regexp = True

intersphinx_mapping = {
    "jax": ("https://docs.jax.dev/en/latest/", None),
    "numpy": ("https://numpy.org/doc/stable/", None),
    "python": ("https://docs.python.org/3/", None),
}
intersphinx_timeout = 5  # seconds, for each inventory

html_theme = "pydata_sphinx_theme"
html_title = f"jupyter_jaxcb {release}"
html_extra_path = ["_generated/recording.schema.json"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": False,
    "show_toc_level": 2,
}
# Only the pages of a section have its navigation on the left; these are sections of one page.
html_sidebars = {page: [] for page in ("index", "installation", "cookbook", "faq", "genindex")}


class _Offline(logging.Filter):
    """Drop the warning that an inventory of intersphinx cannot be reached.

    Without a network the references to JAX, NumPy and Python are plain code instead of links, and
    ``-W`` would otherwise fail the build. The warning has no type, so `suppress_warnings` cannot
    name it.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        return "failed to reach any of the inventories" not in str(record.msg)


for handler_of in ("sphinx.sphinx.ext.intersphinx", "sphinx.sphinx.ext.intersphinx._load"):
    logging.getLogger(handler_of).addFilter(_Offline())


THEMED = """
```{{image}} {light}
:alt: {alt}
:class: only-light
```

```{{image}} {dark}
:alt: {alt}
:class: only-dark
```
"""


def adapt_readme(app, path, docname, source):
    """Adapt an included README, CONTRIBUTING or CHANGELOG: links, and pictures for two themes."""
    if path.name not in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        return
    text = source[0].replace("](CONTRIBUTING.md", "](contributing.md")
    text = text.replace("](notebooks/", "](/tutorials/")
    text = text.replace("](CHANGELOG.md", "](changelog.md")
    for picture in re.findall(r"<picture>.*?</picture>", text, re.DOTALL):
        (dark,) = re.findall(
            r'media="\(prefers-color-scheme: dark\)" srcset="docs/([^"]+)"', picture
        )
        ((alt, light),) = re.findall(r'<img alt="([^"]+)" src="docs/([^"]+)"', picture)
        text = text.replace(picture, THEMED.format(light=light, dark=dark, alt=alt))
    source[0] = text


def link_tutorials(app, docname, source):
    """Lead links to notebooks, which work on a code host, to their pages on this site."""
    source[0] = re.sub(r"\]\((?:\.\./)+notebooks/", "](/tutorials/", source[0])


def mend_links_of_sources(app, pagename, templatename, context, doctree):
    """Lead links from a page of source code to the names under which its objects are documented.

    `viewcode` names all objects of a module after the first one that the reference mentions.
    """
    if not pagename.startswith("_modules/"):
        return
    names = list(app.env.get_domain("py").objects)

    def documented(link):
        name = link[2]
        ending = re.search(r"\.(?:[A-Z]\w*\.)?\w+$", name)[0]
        others = (other for other in names if other.endswith(ending))
        return link[1] + (name if name in names else next(others, name))

    context["body"] = re.sub(
        r'(class="viewcode-back" href="[^"#]*#)([\w.]+)', documented, context["body"]
    )


class CellLexer(IPython3Lexer):
    """As IPython's lexer, but the code below a ``%%`` magic is Python too."""

    def get_tokens_unprocessed(self, text, *args):
        """Yield the line of a cell magic as one token, then those of the code below."""
        magic = re.match(r"%%jax_\w+.*\n?", text)
        start = magic.end() if magic else 0
        if magic:
            yield 0, Comment.Preproc, magic[0]
        for index, token, value in super().get_tokens_unprocessed(text[start:], *args):
            yield start + index, token, value


def setup(app):
    """Connect the functions above; Sphinx calls this once."""
    app.add_lexer("ipython3", CellLexer)
    app.connect("include-read", adapt_readme)
    app.connect("source-read", link_tutorials)
    app.connect("html-page-context", mend_links_of_sources)
