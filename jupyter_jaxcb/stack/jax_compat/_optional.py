"""Find modules of JAX that this package can do without."""

from __future__ import annotations

import importlib
from typing import Any


def optional_module(name: str) -> Any:
    """Return a module of JAX; None if this JAX lacks it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None
