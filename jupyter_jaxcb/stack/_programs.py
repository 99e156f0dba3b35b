"""Compiled programs: which bound sites reached one, and the fate of the others.

JAX drops dead equations before a program is lowered, so a callback that was bound but not
lowered leaves no mark of its own. JAX's compile events say when a function was traced and when
one of that name was lowered, on which thread; binds are told apart by the moment they were made.
"""

from __future__ import annotations

import threading
import time

import jax

from ..recording import Elision, Fate, Recorder, active
from . import _jax
from ._callback import Bind, HostFunction

_TRACED = "/jax/core/compile/jaxpr_trace_duration"
_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"


class _Traces(threading.local):
    """What this thread has traced: tracing and lowering happen on one thread."""

    def __init__(self) -> None:
        self.open: list[Bind] = []  # made, in a trace that has not ended
        self.ended: dict[str, list[Bind]] = {}  # by name of the traced function, latest trace


_traces = _Traces()


def bound(bind: Bind) -> None:
    """Notes a bind of ours, while a recorder listens."""
    recorder = active()
    if recorder is not None:
        recorder.bound(bind.site)
        _traces.open.append(bind)


def rule_ran(host: HostFunction) -> None:
    """Notes that a derivative rule stood in for the binds of `host` made so far."""
    host.rule_ran = time.time()


def watch() -> None:
    """Starts listening to JAX's compile events."""
    jax.monitoring.register_event_duration_secs_listener(_heard)


def unwatch() -> None:
    """Stops listening, and forgets what was traced on this thread."""
    _jax.unregister_duration_listener(_heard)
    _traces.open.clear()


def _heard(event: str, duration: float, **facts: str | int) -> None:
    name = str(facts.get("fun_name", ""))
    if event == _TRACED:
        _trace_ended(name, time.time() - duration)
    elif event == _LOWERED:
        recorder = active()
        if recorder is not None:
            _program_lowered(name, recorder)


def _trace_ended(name: str, start: float) -> None:
    """An outer trace holds the binds of the inner ones, which ended before."""
    made = [bind for bind in _traces.open if bind.made >= start]
    if made:
        _traces.ended[name] = made
    else:
        _traces.ended.pop(name, None)


def _program_lowered(name: str, recorder: Recorder) -> None:
    function = name.removeprefix("jit(").removesuffix(")")
    for bind in _traces.ended.get(function, ()):
        replaced = bind.has_rule and bind.host.rule_ran >= bind.made
        if not bind.lowered and not replaced:
            recorder.elided(_unused(bind, f"jit_{function}"))
            bind.lowered = True  # told once
    _traces.open.clear()


def _unused(bind: Bind, program: str) -> Elision:
    site = bind.site
    if site.flavor == "pure":
        reason = "its result is never used, so JAX dropped the call before compiling"
        remedy = "return or use the result; register it as io if it must run regardless"
    else:
        reason = "the compiled program never reaches it: a loop of length 0, or dead code"
        remedy = "look at the loop length or the branch around this line"
    return Elision(site, program, Fate.UNUSED, reason, remedy)
