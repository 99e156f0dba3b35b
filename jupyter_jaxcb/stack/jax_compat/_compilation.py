"""Hook into the lowering and compilation of programs.

Callbacks work without this module. If a later JAX lacks one of its pieces, less is known about the
programs, and the recording says so.
"""

from __future__ import annotations

import functools
import sys
import time
import weakref
from collections.abc import Iterator
from types import FrameType
from typing import Any

import jax

try:
    from jax._src.interpreters import pxla as _pxla
    from jax.interpreters.partial_eval import dce_jaxpr as _dce_jaxpr
except ImportError:
    _pxla: Any = None
    _dce_jaxpr: Any = None

from ._changes import Changes
from ._environment import uncached_copy
from ._execution import Compiled, RunWatch, Watcher, runs


def watch(watcher: Watcher, changes: Changes) -> None:
    """Report every program to `watcher`, until `changes` are reverted."""
    pxla: Any = _pxla
    original = getattr(pxla, "lower_sharding_computation", None)
    if original is None:
        return

    @functools.wraps(original)
    def lower(jaxpr: Any, api_name: str, fun_name: str, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns()
        with watcher.lowering(jaxpr, fun_name) as when_compiled:
            computation = original(uncached_copy(jaxpr), api_name, fun_name, *args, **kwargs)
            took = time.perf_counter_ns() - start
        if when_compiled:
            _call_after_compile(computation, when_compiled, bool(jaxpr.effects), took, runs)
        return computation

    def change() -> None:
        pxla.lower_sharding_computation = lower

    def undo() -> None:
        if pxla.lower_sharding_computation is lower:
            pxla.lower_sharding_computation = original

    changes.make(lambda: runs.start(watcher), runs.stop)
    changes.make(change, undo)


def without_dead_equations(jaxpr: Any) -> Any:
    """Apply the dead-code elimination JAX applies before lowering, if this JAX has it."""
    if _dce_jaxpr is None:
        return jaxpr
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return _dce_jaxpr(inner, [True] * len(inner.outvars))[0]


def _call_after_compile(
    computation: Any, functions: list[Compiled], effects: bool, lower_ns: int, runs: RunWatch
) -> None:
    # JAX keeps `computation` as long as its jaxpr, and the jaxpr as long as the jitted function. A
    # reference to either in here would keep all three, and the executable, alive forever.
    this = weakref.ref(computation)
    program: Any = None

    def compile_and_report(*args: Any, **kwargs: Any) -> Any:
        nonlocal program
        own: Any = this()
        start = time.perf_counter_ns()
        executable = type(own).compile(own, *args, **kwargs)
        took = time.perf_counter_ns() - start
        while functions:
            program = functions.pop(0)(lambda: _optimized(executable), lower_ns, took)
        if program is not None:
            runs.expect(program, executable, effects, *called_from())
        return executable

    computation.compile = compile_and_report


def drop_executable(lowered: Any) -> None:
    """Drop the executable that a `jax.stages.Lowered` was compiled to, if it is never run.

    Otherwise JAX keeps it as long as the jitted function that was lowered.
    """
    computation = getattr(lowered, "_lowering", None)
    for name in ("_executable", "_hlo"):
        if hasattr(computation, name):
            setattr(computation, name, None)


def _optimized(executable: Any) -> bytes:
    """Return the serialized optimized HLO; raise AttributeError if this JAX does not expose it."""
    (module,) = executable.xla_executable.hlo_modules()
    return module.as_serialized_hlo_module_proto()


def dispatching() -> FrameType | None:
    """Return JAX's frame of the jitted function that is being called or lowered, if any.

    A program that JAX itself compiles for an eager transformation has none.
    """
    ahead: FrameType | None = None
    for frame in _frames():
        code = frame.f_code
        if code.co_name == "call_impl_cache_miss":
            return None
        if code.co_name == "cache_miss" and "fun" in frame.f_locals:
            return frame
        if code.co_name == "jit_lower" and "jit_func" in frame.f_locals:
            return frame
        if code.co_name == "lower" and code.co_filename.endswith("stages.py"):
            ahead = ahead or frame  # traced earlier, then lowered; jit_lower has this frame too
    return ahead


def dispatched() -> Any:
    """Return the Python function that is being compiled; None if unknown."""
    frame = dispatching()
    if frame is None:
        return None
    return frame.f_locals.get("fun") or getattr(frame.f_locals.get("jit_func"), "__wrapped__", None)


def called_from() -> tuple[bool, Any]:
    """Return whether the program is compiled ahead of time, and otherwise the called function.

    The function is None for a program that JAX itself compiles for an eager transformation: later
    runs of it cannot be detected.
    """
    for frame in _frames():
        name = frame.f_code.co_name
        if name == "call_impl_cache_miss":
            return False, None
        if name == "cache_miss" and "fun" in frame.f_locals:
            return False, frame.f_locals["fun"]
    return True, None


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        yield frame
        frame = frame.f_back


def keeps_callbacks_out_of_cache() -> bool:
    """Return whether the persistent compilation cache is on but skips programs with host callbacks.

    JAX skips them up to version 0.10.2; 0.11.2 and 0.12.0 cache them.
    """
    on = bool(jax.config.jax_compilation_cache_dir)  # type: ignore
    return on and jax.__version_info__ < (0, 11)
