"""What `print` and notebooks show of a recording; the layers above register it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TEXTS: dict[type, Callable[[Any], str]] = {}
BUNDLES: dict[type, Callable[[Any], tuple[dict, dict]]] = {}  # data and metadata for Jupyter
PAGES: dict[type, Callable[[Any], str]] = {}  # HTML for notebooks
WIDGETS: dict[type, Callable[[Any], Any]] = {}  # for marimo


def printed(thing: Any) -> str:
    """Return the text of a recording, an outcome or a matrix; its repr if it is empty."""
    text = TEXTS.get(type(thing))
    return (text and text(thing)) or repr(thing)
