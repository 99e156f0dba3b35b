"""Operations of JAX that Python code carries out.

Seen in JAX 0.8.0, 0.10.2 and 0.12.0: a program that is not in JAX's caches is traced and compiled
in Python, by the functions named here; the value of a user context is part of the key of these
caches. Were they renamed, none would be seen.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import jax

_ENTRIES = {
    ("jax._src.core", "bind"),
    ("jax._src.core", "_true_bind"),
    ("jax._src.pjit", "cache_miss"),
    ("jax._src.interpreters.pxla", "aot_cache_miss"),
    ("jax._src.api", "device_put"),
}
_looked: Any = jax.make_user_context(0)
_numbers = itertools.count(1)
_MACHINERY = ("jax", "jupyter_jaxcb", "contextlib", "functools")


def first_operation(call: Callable[[], Any]) -> tuple[str, int] | None:
    """Runs `call`; file and line of the code that first makes JAX compute in it, if any does."""
    found: list[tuple[str, int]] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and not found:
            if (frame.f_globals.get("__name__"), frame.f_code.co_name) in _ENTRIES:
                found.append(_outside(frame))

    previous = sys.getprofile()
    with _looked(next(_numbers)):  # nothing is in the caches: C++ would answer from there unseen
        sys.setprofile(look)
        try:
            call()
        finally:
            sys.setprofile(previous)
    return found[0] if found else None


def _outside(frame: FrameType) -> tuple[str, int]:
    """The nearest caller that is not JAX's, or ours: a host function may call a callback."""
    here: FrameType | None = frame
    while here is not None:
        name = str(here.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _MACHINERY:
            return here.f_code.co_filename, here.f_lineno
        here = here.f_back
    return "", 0
