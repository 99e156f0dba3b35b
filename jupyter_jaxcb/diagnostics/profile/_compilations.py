"""Collect what JAX traces, lowers and compiles during a block."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any, NamedTuple

import jax

from ...recording import Compilation
from ...stack import elision


class Stage(NamedTuple):
    """One step of a compilation: JAX traces or lowers, or XLA compiles."""

    start_ns: int  # on the recorder's clock
    end_ns: int
    function: str  # the name of the compiled function
    thread: int  # as `threading.get_ident` numbers it
    is_last: bool  # XLA compiles, which is counted


class Compilations:
    """What JAX compiles, in any thread, between `watch` and `unwatch`.

    Attributes:
        programs: the compiled programs, with the shapes they were compiled for.
    """

    def __init__(self) -> None:
        self.programs: list[Compilation] = []
        self._stages: list[Stage] = []
        self._compiled = self.programs.append

    def watch(self) -> None:
        """Collect until `unwatch`."""
        jax.monitoring.register_event_duration_secs_listener(self._ended)
        elision.watch_compilations(self._compiled)

    def unwatch(self) -> None:
        """Collect no longer; also after an interrupted `watch`."""
        with contextlib.suppress(AssertionError, ValueError):  # an interrupt came before
            jax.monitoring.unregister_event_duration_listener(self._ended)
        elision.unwatch_compilations(self._compiled)

    def outermost(self) -> list[Stage]:
        """Return the stages without those inside another one of the same thread.

        To trace a function is to trace the functions it calls.
        """
        found: list[Stage] = []
        ends: dict[int, int] = {}
        for stage in sorted(self._stages, key=lambda stage: (stage.start_ns, -stage.end_ns)):
            if stage.end_ns > ends.get(stage.thread, 0):
                found.append(stage)
                ends[stage.thread] = stage.end_ns
        return found

    def _ended(self, event: str, duration_secs: float, **kwargs: Any) -> None:
        end = time.perf_counter_ns()
        if event in elision.STAGES:
            name = str(kwargs.get("fun_name", ""))
            name = name[4:-1] if name.startswith("jit(") and name.endswith(")") else name
            start, thread = end - round(duration_secs * 1e9), threading.get_ident()
            self._stages.append(Stage(start, end, name, thread, event == elision.STAGES[-1]))
