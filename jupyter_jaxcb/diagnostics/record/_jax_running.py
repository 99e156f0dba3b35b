"""Detect JAX code that runs inside a host call."""

from __future__ import annotations

import sys

from ... import jax_compat
from ...capabilities.lint import body_of, jax_inside, warn_once
from ...recording import Frame, JaxUse
from ...stack.call import HostFunction
from ...stack.trace import is_cell
from ._running import RunningCall, calls_on_stack


def notice_jax_inside() -> None:
    """Warn if a host call of this thread makes JAX lower a program, which linting may not find."""
    for call in calls_on_stack(sys._getframe(1), ""):
        warn_of_running(call)


def warn_of_running(call: RunningCall) -> None:
    """Warn of a running host call that is inside JAX now, once for each function body."""
    ours = call.host if isinstance(call.host, HostFunction) else None
    if ours is not None and call.in_jax and jax_compat.host_function_can_block():
        use = _place(call.stack[0]) if call.stack else jax_inside(ours)
        warn_once(body_of(ours.current), call.lowered.site, use or JaxUse("somewhere"))


def _place(frame: Frame) -> JaxUse:
    return JaxUse(f"in {frame.function}", frame.file, frame.line, is_cell(frame.file))
