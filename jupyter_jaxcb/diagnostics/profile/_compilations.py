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
    """One step of a compilation."""

    kind: str  # "trace", "lower" or "compile"
    function: str  # the name of the compiled function
    start_ns: int  # on the recorder's clock
    end_ns: int
    thread: int  # as `threading.get_ident` numbers it


_KINDS = {  # events of `jax.monitoring`, and what they measure
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


class Compilations:
    """What JAX compiles between `watch` and `unwatch`.

    Attributes:
        stages: the steps of all compilations, in the order of their ends.
        programs: the compiled programs, with the shapes they were compiled for.
    """

    def __init__(self) -> None:
        self.stages: list[Stage] = []
        self.programs: list[Compilation] = []

    def watch(self) -> None:
        """Collect, in any thread, until `unwatch`."""
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
        for stage in sorted(self.stages, key=lambda one: (one.start_ns, -one.end_ns)):
            if stage.end_ns > ends.get(stage.thread, 0):
                found.append(stage)
                ends[stage.thread] = stage.end_ns
        return found

    def _compiled(self, compilation: Compilation) -> None:
        self.programs.append(compilation)

    def _ended(self, event: str, duration_secs: float, **kwargs: Any) -> None:
        end = time.perf_counter_ns()
        if event not in _KINDS:
            return
        name = str(kwargs.get("fun_name", ""))
        name = name[4:-1] if name.startswith("jit(") and name.endswith(")") else name
        start = end - round(duration_secs * 1e9)
        self.stages.append(Stage(_KINDS[event], name, start, end, threading.get_ident()))
