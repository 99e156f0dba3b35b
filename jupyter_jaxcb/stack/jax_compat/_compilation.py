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
from typing import Annotated, Any

import jax

from ._changes import Changes
from ._environment import uncached_copy
from ._execution import Compiled, Executable, RunWatch, Watcher, runs
from ._frames import JaxFunction
from ._optional import optional_module

_pxla = optional_module("jax._src.interpreters.pxla")
_dce_jaxpr = getattr(optional_module("jax.interpreters.partial_eval"), "dce_jaxpr", None)

_Computation = Annotated[Any, "jax._src.interpreters.pxla.MeshComputation"]
_Lowered = Annotated[Any, "jax._src.stages.Lowered"]
# If a JAX renames these functions, removed callbacks may be missing in a recording, and later runs
# of a program are not counted.
_EAGER = JaxFunction("jax._src.pjit", "call_impl_cache_miss")
_CALLED = JaxFunction("jax._src.pjit", "cache_miss", "fun")
_LOWERED = JaxFunction("jax._src.pjit", "jit_lower", "jit_func")
_LOWERED_LATER = JaxFunction("jax._src.stages", "lower")  # traced earlier; _LOWERED calls it too


def watches_programs() -> bool:
    """Return whether this JAX has what `watch` needs.

    If not, a recording still has every host call, but no callback that JAX or XLA removed.
    """
    computation = getattr(_pxla, "MeshComputation", None)
    return hasattr(_pxla, "lower_sharding_computation") and hasattr(computation, "compile")


def watch(watcher: Watcher, changes: Changes) -> None:
    """Report every program to `watcher`, until `changes` are reverted."""
    if not watches_programs():
        return
    pxla: Any = _pxla
    original = pxla.lower_sharding_computation

    @functools.wraps(original)
    def lower(closed_jaxpr: Any, api_name: str, fun_name: str, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns()
        with watcher.lowering(closed_jaxpr, fun_name) as when_compiled:
            copy = uncached_copy(closed_jaxpr)
            computation = original(copy, api_name, fun_name, *args, **kwargs)
            took = time.perf_counter_ns() - start
        if when_compiled:
            effects = bool(closed_jaxpr.effects)
            _call_after_compile(computation, when_compiled, effects, took, runs)
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
    computation: _Computation,
    functions: list[Compiled],
    effects: bool,
    lower_ns: int,
    runs: RunWatch,
) -> None:
    # JAX keeps `computation` as long as its jaxpr, and the jaxpr as long as the jitted function. A
    # reference to either in here would keep all three, and the executable, alive forever.
    this = weakref.ref(computation)
    program: Any = None

    def compile_and_report(*args: Any, **kwargs: Any) -> Any:
        nonlocal program
        own: _Computation = this()
        start = time.perf_counter_ns()
        executable = type(own).compile(own, *args, **kwargs)
        took = time.perf_counter_ns() - start
        while functions:
            program = functions.pop(0)(executable, lower_ns, took)
        if program is not None:
            runs.expect(program, executable, effects, *called_from())
        return executable

    computation.compile = compile_and_report


def drop_executable(lowered: _Lowered) -> None:
    """Drop the executable that a `jax.stages.Lowered` was compiled to, if it is never run.

    Otherwise JAX keeps it as long as the jitted function that was lowered.
    """
    computation: _Computation = getattr(lowered, "_lowering", None)
    for name in ("_executable", "_hlo"):
        if hasattr(computation, name):
            setattr(computation, name, None)


def optimized(executable: Executable) -> bytes:
    """Return the serialized optimized HLO; raise AttributeError if this JAX does not expose it."""
    (module,) = executable.xla_executable.hlo_modules()
    return module.as_serialized_hlo_module_proto()


def dispatching() -> FrameType | None:
    """Return JAX's frame of the jitted function that is being called or lowered, if any.

    A program that JAX itself compiles for an eager transformation has none.
    """
    ahead: FrameType | None = None
    for frame in _frames():
        if _EAGER.is_run_by(frame.f_code):
            return None
        if _CALLED.is_run_by(frame.f_code) or _LOWERED.is_run_by(frame.f_code):
            return frame
        if _LOWERED_LATER.is_run_by(frame.f_code):
            ahead = ahead or frame
    return ahead


def dispatched() -> Any:
    """Return the Python function that is being compiled; None if unknown."""
    frame = dispatching()
    if frame is None:
        return None
    lowered = getattr(_LOWERED.value_in(frame), "__wrapped__", None)
    return lowered or _CALLED.value_in(frame)


def called_from() -> tuple[bool, Any]:
    """Return whether the program is compiled ahead of time, and otherwise the called function.

    The function is None for a program that JAX itself compiles for an eager transformation: later
    runs of it cannot be detected.
    """
    for frame in _frames():
        if _EAGER.is_run_by(frame.f_code):
            return False, None
        if _CALLED.is_run_by(frame.f_code):
            return False, _CALLED.value_in(frame)
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
