"""Frames of ours that JAX is to take for its own."""

from __future__ import annotations

import contextlib
import importlib

_excluded: set[str] = set()


def leave_out_of_tracebacks(file: str) -> None:
    """Makes JAX take the frames of a module for its own, as the ones around them are.

    Else the places that JAX notes in programs and names in errors would be in there. Without these
    functions they are.
    """
    if file in _excluded:
        return
    _excluded.add(file)
    for name in ("source_info_util", "traceback_util"):
        with contextlib.suppress(ImportError, AttributeError):
            importlib.import_module(f"jax._src.{name}").register_exclusion(file)
