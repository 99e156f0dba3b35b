"""Compiled programs: which of their sites were lowered, and the fate of the others.

JAX drops dead equations just before it lowers a program, so a callback whose result is not needed
leaves no mark in what XLA gets. The jaxpr as it was before that holds every bind; what the
lowering rule then did not see is unused.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from ..recording import Elision, Fate, active
from . import _jax
from ._callback import Bind, HostCallback

# Jaxprs that JAX carries along and need not lower: a solver's matvec and its transpose.
_NOT_LOWERED = {"custom_linear_solve"}


class _Lowerings(threading.local):
    """Programs this thread is lowering right now; they nest."""

    def __init__(self) -> None:
        self.seen: list[set[Bind]] = []  # what the lowering rule saw, one set a program


_lowerings = _Lowerings()
_any_lowered = False
_undo = contextlib.ExitStack()


def bound(bind: Bind) -> None:
    """Notes a bind of ours, while a recorder listens."""
    recorder = active()
    if recorder is not None:
        recorder.bound(bind.site)


def any_lowered() -> bool:
    """Whether there is, or was, any program with a callback of ours."""
    return _any_lowered


def lowered(bind: Bind) -> None:
    """Notes that the lowering rule was asked to lower a bind."""
    global _any_lowered
    _any_lowered = True
    if _lowerings.seen:
        _lowerings.seen[-1].add(bind)


def watch() -> None:
    """Starts looking at every program that JAX lowers and compiles."""
    _undo.callback(_jax.watch_lowering(_lowering))


def unwatch() -> None:
    """Stops looking, and puts JAX back as it was."""
    _undo.close()


@contextlib.contextmanager
def _lowering(jaxpr: Any, name: str) -> Iterator[list[Callable[[], None]]]:
    """Around the lowering of one program, given its jaxpr before dead equations are dropped."""
    when_compiled: list[Callable[[], None]] = []
    _lowerings.seen.append(set())
    try:
        yield when_compiled
    finally:
        seen = _lowerings.seen.pop()
    missing = [bind for bind in _binds(jaxpr) if bind not in seen]
    if missing:
        when_compiled.append(lambda: _tell(missing, f"jit_{name}"))


def _tell(missing: list[Bind], program: str) -> None:
    recorder = active()
    if recorder is not None:
        for bind in missing:
            recorder.elided(_unused(bind, program))


def _binds(jaxpr: Any) -> list[Bind]:
    """Our binds in `jaxpr` and in every jaxpr inside it, each once, in program order."""
    found: dict[Bind, None] = {}
    for equation in getattr(jaxpr, "jaxpr", jaxpr).eqns:
        callback = equation.params.get("callback")
        if isinstance(callback, HostCallback):
            found[callback.bind] = None
        if equation.primitive.name in _NOT_LOWERED:
            continue
        for inner in _inner_jaxprs(equation.params.values()):
            found.update(dict.fromkeys(_binds(inner)))
    return list(found)


def _inner_jaxprs(parameters: Any) -> Iterator[Any]:
    for value in parameters:
        if hasattr(value, "eqns") or hasattr(getattr(value, "jaxpr", None), "eqns"):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from _inner_jaxprs(value)


def _unused(bind: Bind, program: str) -> Elision:
    site = bind.site
    if site.flavor == "pure":
        reason = "its result is never used, so JAX dropped the call before compiling"
        remedy = "return or use the result; register it as io if it must run regardless"
    else:
        reason = "the compiled program never reaches it: a loop of length 0, or dead code"
        remedy = "look at the loop length or the branch around this line"
    return Elision(site, program, Fate.UNUSED, reason, remedy)
