"""JAX that runs inside of a host call, seen while it does."""

from __future__ import annotations

import sys

from ...stack import jax_compat
from ...stack.core import HostFunction
from ...stack.lint import Use, jax_inside, warn_once
from ._running import RunningCall, calls_on_stack


def notice_jax_inside() -> None:
    """Warns if a host call of this thread has JAX lower a program: what no code shows is seen."""
    for call in calls_on_stack(sys._getframe(1), ""):
        warn_of_running(call)


def warn_of_running(call: RunningCall) -> None:
    """Warns of a call of ours that is inside of JAX now, once for each body."""
    ours = call.host if isinstance(call.host, HostFunction) else None
    if ours is not None and call.in_jax and jax_compat.host_function_can_block():
        place = call.stack[0] if call.stack else None
        use = Use(f"in {place.function}", place.file, place.line) if place else jax_inside(ours)
        use = use or Use("somewhere")
        warn_once(ours, call.lowered.site, use)
