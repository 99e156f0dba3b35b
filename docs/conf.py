"""Sphinx: ``make docs`` builds the pages of this folder, warnings being errors."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

# Only now does Python find these.
from from_code import write_pages  # noqa: E402
from json_schema import write_schema  # noqa: E402

write_pages(HERE / "_generated")
write_schema(HERE / "_generated")

project = "jupyter_jaxcb"
author = "The jupyter_jaxcb developers"
project_copyright = author
version = release = installed("jupyter_jaxcb")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build", "_generated", "pictures"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
# In docstrings, `record` is a link to what is documented under this name, and code otherwise.
default_role = "py:obj"
autodoc_member_order = "bysource"
napoleon_use_rtype = False  # what stands before the colon is no type
autodoc_typehints = "none"  # the Args say it in words
add_module_names = False
python_use_unqualified_type_names = True

html_theme = "pydata_sphinx_theme"
html_title = f"jupyter_jaxcb {release}"
html_extra_path = ["_generated/recording.schema.json"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navbar_align": "left",
    "show_prev_next": False,
    "show_toc_level": 2,
}
# The navigation on the left is that of guide and reference; the others have one page each.
html_sidebars = {
    page: []
    for page in (
        *("index", "magics", "glossary", "architecture", "jax-facts", "extending", "contributing"),
        "genindex",
    )
}


def links_of_the_readme(app, path, docname, source):
    """The README stands one folder above its page here."""
    if path.name == "README.md":
        source[0] = (
            source[0]
            .replace("](notebooks/", "](../notebooks/")
            .replace("](CONTRIBUTING.md)", "](contributing.md)")
        )


def setup(app):
    """Sphinx calls this once."""
    app.connect("include-read", links_of_the_readme)
