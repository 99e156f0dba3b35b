"""Copy the tutorials into the documentation, so that they are searchable pages of the site."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from from_code import write


def write_tutorials(notebooks: Path, folder: Path) -> None:
    """Write one page for each notebook, with its saved outputs, and remove stale pages.

    Args:
        notebooks: the folder of the notebooks.
        folder: the folder of the pages; ignored by git.
    """
    folder.mkdir(exist_ok=True)
    paths = sorted(notebooks.glob("*.ipynb"))
    for stale in {path.name for path in folder.glob("*.ipynb")} - {path.name for path in paths}:
        (folder / stale).unlink()
    for path in paths:
        notebook = json.loads(path.read_text(encoding="utf-8"))
        write(folder / path.name, json.dumps(page(notebook), indent=1))


def page(notebook: dict[str, Any]) -> dict[str, Any]:
    """Adapt a notebook to the site: its links, and its host traces, which are opened."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = links_of_the_site("".join(cell["source"]))
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            for mime in [mime for mime in data if mime.startswith("application/vnd.jupyter-jaxcb")]:
                del data[mime]  # only JupyterLab draws it; text/html has the same host trace
            if "text/html" in data:
                data["text/html"] = opened("".join(data["text/html"]))
    return notebook


def links_of_the_site(text: str) -> str:
    """Rewrite links to ``../docs`` and ``../README.md``, which are beside and above the page."""
    text = re.sub(r"\]\(\.\./docs/", "](../", text)
    return re.sub(r"\]\(\.\./README\.md", "](../index.md", text)


def opened(html: str) -> str:
    """Open the outermost ``<details>`` of an output."""
    return re.sub(r"<details(?![^>]*\bopen\b)", "<details open", html, count=1)
