"""Read from JAX's own frames what is being traced, and find the first operation of a call.

Checked against JAX 0.8.0, 0.10.2 and 0.12.0: a program that is not in JAX's caches is traced and
compiled in Python by the functions named here, and the value of a user context is part of the keys
of these caches. If these functions are renamed, nothing is found.
"""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import jax

_ENTRIES = {
    ("jax._src.core", "bind"),
    ("jax._src.core", "_true_bind"),
    ("jax._src.pjit", "cache_miss"),
    ("jax._src.interpreters.pxla", "aot_cache_miss"),
    ("jax._src.api", "device_put"),
}
_CUSTOM_VMAP = os.path.join("jax", "_src", "custom_batching.py")
_looked: Any = jax.make_user_context(0)
_numbers = itertools.count(1)
_MACHINERY = ("jax", "jupyter_jaxcb", "contextlib", "functools")


def first_operation(call: Callable[[], Any]) -> tuple[str, int] | None:
    """Run `call`; return file and line of the first code in it that uses JAX, if any."""
    found: list[tuple[str, int]] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and not found:
            if (frame.f_globals.get("__name__"), frame.f_code.co_name) in _ENTRIES:
                found.append(_outside(frame))

    previous = sys.getprofile()
    with _looked(next(_numbers)):  # makes the caches miss: a hit would stay in C++ unnoticed
        sys.setprofile(look)
        try:
            call()
        finally:
            sys.setprofile(previous)
    return found[0] if found else None


def _outside(frame: FrameType) -> tuple[str, int]:
    """Return the nearest caller outside JAX and this package."""
    here: FrameType | None = frame
    while here is not None:
        name = str(here.f_globals.get("__name__", ""))
        if name.partition(".")[0] not in _MACHINERY:
            return here.f_code.co_filename, here.f_lineno
        here = here.f_back
    return "", 0


# JAX's functions that trace their argument: the kind of trace, and the variable with its size.
_TRACES = {
    ("loops.py", "scan"): ("scan", "length"),
    ("loops.py", "while_loop"): ("while", ""),
    ("conditionals.py", "cond"): ("cond", ""),
    ("conditionals.py", "switch"): ("cond", ""),
    ("api.py", "vmap_f"): ("vmap", "axis_size_"),
    ("custom_derivatives.py", "__call__"): ("rule", ""),
    ("pjit.py", "_infer_params"): ("jit", ""),
    ("pjit.py", "cache_miss"): ("dispatch", ""),
    ("pjit.py", "jit_lower"): ("dispatch", ""),
    ("api.py", "eval_shape"): ("shape", ""),
    ("api.py", "make_jaxpr_f"): ("look", ""),
}
_TRACERS = frozenset(name for _, name in _TRACES)


def traced_by(frame: FrameType) -> tuple[str, int | None] | None:
    """Return what a frame of JAX traces: ``("scan", 5)``, ``("jit", None)``; None for most frames.

    If a JAX renames these functions, nothing is known about what surrounds a bind, and no callback
    is reported as hoisted.
    """
    code = frame.f_code
    if code.co_name not in _TRACERS:
        return None
    found = _TRACES.get((os.path.basename(code.co_filename), code.co_name))
    if found is None:
        return None
    kind, variable = found
    size = frame.f_locals.get(variable) if variable else None
    return kind, size if isinstance(size, int) else None


def is_dispatch(code: CodeType) -> bool:
    """Return whether `code` is JAX's dispatch of a jitted function that is being compiled.

    If a JAX renames it, the code that calls a compiled program counts as a caller of its binds.
    """
    kind, _ = _TRACES.get((os.path.basename(code.co_filename), code.co_name), ("", ""))
    return kind == "dispatch"


_DERIVATIVES = os.path.join("jax", "_src", "interpreters", "ad.py")


def differentiates(code: CodeType) -> bool:
    """Return whether `code` is JAX's code that takes a derivative.

    If a JAX moves it, a bind that a differentiation rule replaces is reported as dropped.
    """
    return code.co_filename.endswith(_DERIVATIVES)


_CALLS_RULES = frozenset({"_flatten_jvp", "_flatten_fwd", "_flatten_bwd"})


def calls_a_rule(code: CodeType) -> bool:
    """Return whether `code` is JAX's code that calls a differentiation rule.

    If a JAX renames it, a bind in a rule has a separate row for each place that differentiates.
    """
    if code.co_name not in _CALLS_RULES:
        return False
    return os.path.basename(code.co_filename) == "custom_derivatives.py"


def handles_whole_batch(code: CodeType) -> bool:
    """Return whether `code` is JAX's code around a `custom_vmap` rule; False if it has moved."""
    return code.co_filename.endswith(_CUSTOM_VMAP)
