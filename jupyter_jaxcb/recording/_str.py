"""What `print` shows; the layer `report` has the words for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TEXTS: dict[type, Callable[[Any], str]] = {}


def printed(thing: Any) -> str:
    """The report of a recording, or the table of a matrix; of one with nothing in it its repr."""
    text = TEXTS.get(type(thing))
    return (text and text(thing)) or repr(thing)
