"""Frames of ours that JAX is to take for its own."""

from __future__ import annotations

import contextlib
import importlib
import os

_STACK = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_OURS = os.path.join(_STACK, ""), os.path.join(os.path.dirname(_STACK), "host_callback.py")


def leave_out_of_tracebacks() -> None:
    """Makes JAX take the frames of our stack for its own, as the ones around them are.

    Else the places that JAX notes in programs, and shows in errors, would be in there. Without
    these functions they are.
    """
    for name in ("source_info_util", "traceback_util"):
        with contextlib.suppress(ImportError, AttributeError):
            register = importlib.import_module(f"jax._src.{name}").register_exclusion
            for path in _OURS:
                register(path)
