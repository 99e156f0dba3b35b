"""Frames of ours that JAX is to take for its own."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

_PARTS = ("stack", "diagnostics", "host_callback")


def _package() -> str:
    file = str(sys.modules[__name__.partition(".")[0]].__file__)
    return os.path.dirname(os.path.abspath(file))


def leave_out_of_tracebacks() -> None:
    """Makes JAX take the frames of our stack for its own, as the ones around them are.

    Else the places that JAX notes in programs, and shows in errors, would be in there. Without
    these functions they are.
    """
    for name in ("source_info_util", "traceback_util"):
        with contextlib.suppress(ImportError, AttributeError):
            register = importlib.import_module(f"jax._src.{name}").register_exclusion
            for part in _PARTS:
                register(os.path.join(_package(), part))
