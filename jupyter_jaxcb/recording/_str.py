"""The texts that `print` shows; the layer `report` registers them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TEXTS: dict[type, Callable[[Any], str]] = {}


def printed(thing: Any) -> str:
    """Return the text of a recording, an outcome or a matrix; its repr if it is empty."""
    text = TEXTS.get(type(thing))
    return (text and text(thing)) or repr(thing)
