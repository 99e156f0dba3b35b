"""Record how long JAX traces, lowers and compiles, programs without callbacks too."""

from __future__ import annotations

import collections
import contextlib
import threading
import time
from typing import Any

import jax

from ..trace import listener

# What JAX does before a program runs: events of `jax.monitoring`.
STAGES = tuple(
    f"/jax/core/compile/{stage}_duration"
    for stage in ("jaxpr_trace", "jaxpr_to_mlir_module", "backend_compile")
)


class _Stages(threading.local):
    """The last stages of compilations that this thread ended, with their ends and times."""

    def __init__(self) -> None:
        self.ended: collections.deque[tuple[int, int]] = collections.deque(maxlen=10_000)


_stages = _Stages()


def listen_to_stages() -> None:
    """Record what JAX compiles from now on."""
    jax.monitoring.register_event_duration_secs_listener(_compiled)


def listen_no_longer() -> None:
    """Undo `listen_to_stages`."""
    with contextlib.suppress(AssertionError, ValueError):  # it is not there
        jax.monitoring.unregister_event_duration_listener(_compiled)


def _compiled(event: str, duration_secs: float, **_: Any) -> None:
    """Record a stage of a compilation, without the stages inside, which end before it does."""
    if event not in STAGES or (recorder := listener()) is None:
        return
    end, took = time.perf_counter_ns(), round(duration_secs * 1e9)
    own = took
    while _stages.ended and _stages.ended[-1][0] > end - took:
        own -= _stages.ended.pop()[1]
    _stages.ended.append((end, took))
    recorder.add(compiled_ns=max(own, 0))
