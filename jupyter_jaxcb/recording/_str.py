"""What `print` shows; the layer `report` has the words for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

TEXTS: dict[type, Callable[[Any], str]] = {}


def printed(thing: Any) -> str:
    """The words for a recording, an outcome, a matrix; its repr where there are none."""
    text = TEXTS.get(type(thing))
    return (text and text(thing)) or repr(thing)
