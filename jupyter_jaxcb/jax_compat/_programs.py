"""Hook into the lowering and the compilation of programs, and read what they are compiled to.

Callbacks work without this module. If a later JAX lacks one of its pieces, less is known about the
programs and their runs, and the recording says so.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Annotated, Any, Protocol

import jax

from ._environment import uncached_copy
from ._private import Changes, JaxFunction, optional_module
from ._runs import Executable, RunWatcher, runs

_backend = optional_module("jax.extend.backend")
_pxla = optional_module("jax._src.interpreters.pxla")
_dce_jaxpr = getattr(optional_module("jax.interpreters.partial_eval"), "dce_jaxpr", None)
_Computation = Annotated[Any, "jax._src.interpreters.pxla.MeshComputation"]
_Lowered = Annotated[Any, "jax._src.stages.Lowered"]
_GSPMD = Annotated[Any, "jaxlib.xla_client.HloSharding"]
# If a JAX renames these functions, removed callbacks may be missing in a recording, and later runs
# of a program are not counted.
_EAGER = JaxFunction("jax._src.pjit", "call_impl_cache_miss")
_CALLED = JaxFunction("jax._src.pjit", "cache_miss", "fun")
_LOWERED = JaxFunction("jax._src.pjit", "jit_lower", "jit_func")
_LOWERED_LATER = JaxFunction("jax._src.stages", "lower")  # traced earlier; _LOWERED calls it too

# Called when a program has been compiled, with its executable (see `optimized`) and the nanoseconds
# that lowering and compiling took.
Compiled = Callable[[Executable, int, int], Any]


class Watcher(RunWatcher, Protocol):
    """Receives events about programs and their runs."""

    def lowering(self, jaxpr: Any, name: str) -> contextlib.AbstractContextManager[list[Compiled]]:
        """Return a context manager around lowering, given the jaxpr before dead-code elimination.

        The functions in the list it yields are called once the program is compiled. Their return
        value identifies the program to `ran`; None if its runs do not matter.
        """
        ...


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
            _call_after_compile(computation, when_compiled, effects, took)
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
    computation: _Computation, functions: list[Compiled], effects: bool, lower_ns: int
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


def shardings_of_results(executable: Executable) -> Sequence[Any]:
    """Return the shardings of the results; none if this JAX does not expose them."""
    return getattr(executable, "_out_shardings", None) or ()


def is_on_one_of_several(sharding: Any) -> bool:
    """Return whether one of several devices has the values, though JAX says that all have them."""
    inside: _GSPMD = getattr(sharding, "_hlo_sharding", None)
    is_maximal = getattr(inside, "is_maximal", None)
    return is_maximal is not None and is_maximal() and len(sharding.device_set) > 1


def modules_of_programs() -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield each compiled program that JAX holds: its name, and a function that reads its HLO.

    If a JAX lacks one of the pieces, there are none, and a profile has only XLA's own names.
    """
    backends = getattr(_backend, "backends", None)
    for client in backends().values() if backends is not None else ():
        for executable in getattr(client, "live_executables", list)():
            for module in executable.hlo_modules():
                yield module.name, module.as_serialized_hlo_module_proto


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


DURATIONS = {  # events of `jax.monitoring`, and what they measure
    "/jax/core/compile/jaxpr_trace_duration": "trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}
Report = Callable[[str, str, float], None]

_reports: list[Report] = []  # called with each compilation
_listening: list[bool] = []  # not empty: `_listen` is registered, or will be


def watch_compilation_times(report: Report) -> None:
    """Report what JAX traces, lowers and compiles, in the thread that does it, when it has ended.

    Args:
        report: called with "trace", "lower" or "compile", the name of the function, and seconds.
    """
    _reports.append(report)
    if not _listening:
        _listening.append(True)
        jax.monitoring.register_event_duration_secs_listener(_listen)


def unwatch_compilation_times(report: Report) -> None:
    """Remove `report`, if `watch_compilation_times` added it."""
    _reports[:] = [one for one in _reports if one != report]
    if _listening and not _reports:
        with contextlib.suppress(AssertionError):  # an interrupt kept it from being registered
            jax.monitoring.unregister_event_duration_listener(_listen)
        _listening.clear()


def _listen(event: str, duration_secs: float, **kwargs: Any) -> None:
    if event in DURATIONS:
        name = str(kwargs.get("fun_name", ""))
        name = name[4:-1] if name.startswith("jit(") and name.endswith(")") else name
        for report in tuple(_reports):
            report(DURATIONS[event], name, duration_secs)
