"""Hook into the lowering, the compilation and the runs of programs.

Callbacks work without this module. If a later JAX lacks one of its pieces, less is known about the
programs and their runs, and the recording says so.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Annotated, Any, Protocol

import jax

from ._environment import uncached_copy
from ._private import Changes, JaxFunction, optional_module
from ._tokens import note_run

_api = optional_module("jax._src.api")
_pxla = optional_module("jax._src.interpreters.pxla")
Executable = Annotated[Any, "jax._src.interpreters.pxla.MeshExecutable"]
_Run = Annotated[Any, "jax._src.interpreters.pxla.ExecuteReplicated"]
# Called when a program has been compiled, with its executable (see `optimized`) and the nanoseconds
# that lowering and compiling took.
Compiled = Callable[[Executable, int, int], Any]


class Watcher(Protocol):
    """Receives events about programs."""

    def lowering(self, jaxpr: Any, name: str) -> contextlib.AbstractContextManager[list[Compiled]]:
        """Return a context manager around lowering, given the jaxpr before dead-code elimination.

        The functions in the list it yields are called once the program is compiled. Their return
        value identifies the program to `ran`; None if its runs do not matter.
        """
        ...

    def started_counting(self, program: Any) -> None:
        """Handle a program whose runs are all reported from now on."""
        ...

    def ran(self, program: Any) -> None:
        """Handle a run of a program."""
        ...

    def lost_count(self, program: Any) -> None:
        """Handle a program whose runs can no longer be reported."""
        ...


_MAKES = "create_cpp_call"  # method of JAX's executables that makes their C++ fast path


class RunWatch:
    """Detects runs of programs: those with effects in Python, the others by JAX's post hook."""

    def __init__(self) -> None:
        self._watcher: Watcher | None = None
        self._by_executable: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._by_function: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._changes = Changes()
        self._lock = threading.RLock()  # reentrant: the garbage collector may call this again
        self._watching = False
        self._unmask: Callable[[], None] = lambda: None

    def start(self, watcher: Watcher) -> None:
        """Report runs to `watcher` from now on, including those of programs compiled earlier."""
        self._watcher = watcher
        self._watch()

    def stop(self) -> None:
        """Stop reporting, and restore JAX."""
        self._watcher = None
        with self._lock:
            self._watching = False
            self._changes.revert()

    def _watch(self) -> None:
        with self._lock:
            if not self._watching and self._watcher is not None:
                self._changes.revert()  # left over from an interrupted call
                self._watch_python()
                self._watch_fast_path()
                self._watching = True
        self._unmask()

    def expect(
        self, program: Any, executable: Executable, effects: bool, ahead: bool, called_by: Any
    ) -> None:
        """Report runs of `executable` as runs of `program`, as far as they can be detected."""
        if ahead:
            self._expect_ahead(program, executable)
            return
        run = getattr(executable, "unsafe_call", None)
        if run is None or not (effects or called_by is not None):
            return
        self._watch()
        watcher = self._watcher
        if watcher is None:
            return
        try:
            self._by_executable[run] = program
            if not effects:  # from the second run on it uses the C++ fast path
                # The hook does not say which program of a function ran.
                known = self._by_function.get(called_by, program)
                several = known != program
                if several and known is not None:
                    watcher.lost_count(known)
                self._by_function[called_by] = None if several else program
                if several:
                    return
        except TypeError:  # no weak references
            return
        watcher.started_counting(program)

    def _expect_ahead(self, program: Any, executable: Executable) -> None:
        """As `expect`, for an `executable` that was compiled ahead of time.

        Its first run goes through Python. If the program has no host callbacks left, JAX makes a
        C++ function for later runs.
        """
        run = getattr(executable, "unsafe_call", None)
        make = getattr(type(executable), _MAKES, None)
        if run is None or make is None:
            return
        self._watch()
        this = weakref.ref(executable)  # the attribute must not keep its own object alive

        def make_and_note(*args: Any, **kwargs: Any) -> Any:
            function = make(this(), *args, **kwargs)
            if function is not None:
                self._by_function[function] = program
            return function

        try:
            self._by_executable[run] = program
            setattr(executable, _MAKES, make_and_note)
        except (TypeError, AttributeError):  # no weak references, or no new attributes
            return
        if self._watcher is not None:
            self._watcher.started_counting(program)

    def _watch_python(self) -> None:
        kind = getattr(_pxla, "ExecuteReplicated", None)
        if kind is None or "__call__" not in vars(kind):
            return
        original = kind.__call__

        @functools.wraps(original)
        def call(executable: Any, *args: Any) -> Any:
            __tracebackhide__ = True
            program, watcher = self._by_executable.get(executable), self._watcher
            if program is not None and watcher is not None:
                watcher.ran(program)
                self._unmask()
            results = original(executable, *args)
            note_run(results)
            return results

        def change() -> None:
            kind.__call__ = call

        def undo() -> None:
            if kind.__call__ is call:
                kind.__call__ = original

        self._changes.make(change, undo)

    def _watch_fast_path(self) -> None:
        state: Any = getattr(_api, "_post_hook_state", None)
        methods = ("get_global", "set_global", "get_local", "set_local")
        if not all(hasattr(state, method) for method in methods):
            return
        previous = state.get_global()

        def hook(function: Any, args: Any, kwargs: Any, output: Any) -> None:
            if previous is not None:
                previous(function, args, kwargs, output)
            called = getattr(function, "__wrapped__", None)  # None: compiled ahead of time
            program = self._by_function.get(function if called is None else called)
            watcher = self._watcher
            if program is not None and watcher is not None:
                watcher.ran(program)
            note_run(output)

        def unmask() -> None:
            # jax.debug_nans(False), which JAX itself uses in many places (vmap, jnp.var), sets the
            # thread's hook to None instead of unsetting it, which hides the global hook.
            if previous is None and state.get_local() is None and state.get_global() is hook:
                state.set_local(_api.config_ext.unset)

        def undo() -> None:
            self._unmask = lambda: None
            if state.get_global() is hook:
                state.set_global(previous)

        self._changes.make(lambda: state.set_global(hook), undo)
        if hasattr(getattr(_api, "config_ext", None), "unset"):
            self._unmask = unmask


runs = RunWatch()  # global, because programs outlive recorders


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
_RUN = JaxFunction("jax._src.interpreters.pxla", "__call__")  # every run with host callbacks


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


def is_in_run(frame: FrameType | None) -> bool:
    """Return whether a thread is in the run of a program at `frame`; False if it is in C++ only.

    Programs with host callbacks are run from Python.
    """
    while frame is not None and not _RUN.is_run_by(frame.f_code):
        frame = frame.f_back
    return frame is not None


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
