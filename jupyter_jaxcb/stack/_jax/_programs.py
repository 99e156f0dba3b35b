"""Programs that are lowered, compiled, run.

Nothing in here is needed for callbacks to work: where a piece is gone in a later JAX, less is known
of the programs, and the recording says so.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any, Protocol

import jax

try:
    from jax._src import api as _api
    from jax._src.interpreters import pxla as _pxla
    from jax.interpreters.partial_eval import dce_jaxpr as _dce_jaxpr
except ImportError:
    _api: Any = None
    _pxla: Any = None
    _dce_jaxpr: Any = None

# Called when a program has been compiled: with what reads its optimised HLO, and the nanoseconds
# that lowering and compiling took.
Compiled = Callable[[Callable[[], str], int, int], Any]


class Watcher(Protocol):
    """Who is told of programs."""

    def lowering(self, jaxpr: Any, name: str) -> contextlib.AbstractContextManager[list[Compiled]]:
        """Around the lowering of a program, given its jaxpr before dead equations are dropped.

        What is in the list afterwards is called once the program is compiled; what that returns
        names the program to `ran`, None if its runs are of no interest.
        """
        ...

    def counts(self, program: Any) -> None:
        """Runs of a program will be told, from its first one on."""
        ...

    def ran(self, program: Any) -> None:
        """A program is run."""
        ...

    def lost_count(self, program: Any) -> None:
        """Runs of a program cannot be told any more."""
        ...


def watch(watcher: Watcher) -> Callable[[], None]:
    """Tells `watcher` of every program from now on.

    Returns:
        A function that puts JAX back as it was.
    """
    pxla: Any = _pxla
    original = getattr(pxla, "lower_sharding_computation", None)
    if original is None:
        return lambda: None
    runs = _runs
    runs.start(watcher)

    @functools.wraps(original)
    def lower(jaxpr: Any, api_name: str, fun_name: str, *args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter_ns()
        with watcher.lowering(jaxpr, fun_name) as when_compiled:
            computation = original(jaxpr, api_name, fun_name, *args, **kwargs)
            took = time.perf_counter_ns() - start
        if when_compiled:
            _call_after_compile(computation, when_compiled, jaxpr, took, runs)
        return computation

    def undo() -> None:
        runs.stop()
        if pxla.lower_sharding_computation is lower:
            pxla.lower_sharding_computation = original

    pxla.lower_sharding_computation = lower
    return undo


def without_dead_equations(jaxpr: Any) -> Any:
    """`jaxpr` as JAX lowers it; as it is where that is not known."""
    if _dce_jaxpr is None:
        return jaxpr
    inner = getattr(jaxpr, "jaxpr", jaxpr)
    return _dce_jaxpr(inner, [True] * len(inner.outvars))[0]


def _call_after_compile(
    computation: Any, functions: list[Compiled], jaxpr: Any, lower_ns: int, runs: _Runs
) -> None:
    this = weakref.ref(computation)  # the attribute must not keep its own object alive
    called_by = dispatched()

    def compile_and_tell(*args: Any, **kwargs: Any) -> Any:
        own: Any = this()
        start = time.perf_counter_ns()
        executable = type(own).compile(own, *args, **kwargs)
        took = time.perf_counter_ns() - start
        while functions:
            program = functions.pop(0)(lambda: _optimised(executable), lower_ns, took)
            if program is not None:
                runs.expect(program, executable, bool(jaxpr.effects), called_by)
        return executable

    computation.compile = compile_and_tell


def _optimised(executable: Any) -> str:
    """The optimised HLO as text; raises AttributeError where JAX has no way to it."""
    (module,) = executable.xla_executable.hlo_modules()
    return module.to_string()


def dispatching() -> FrameType | None:
    """JAX's frame of the jitted function that is called, or lowered, for the first time.

    Programs that JAX itself compiles for an eager transformation have none: nothing tells when
    these run again.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_name
        if name == "call_impl_cache_miss":
            return None
        if name == "cache_miss" and "fun" in frame.f_locals:
            return frame
        if name == "jit_lower" and "jit_func" in frame.f_locals:
            return frame
        frame = frame.f_back
    return None


def dispatched() -> Any:
    """The function whose call is compiled now; None where none is, or its runs cannot be told."""
    frame = dispatching()
    return None if frame is None else frame.f_locals.get("fun")


def keeps_callbacks_out_of_cache() -> bool:
    """Whether the persistent compilation cache is on, and keeps no program with host callbacks.

    So up to JAX 0.10.2; 0.11.2 and 0.12.0 keep them.
    """
    on = bool(jax.config.jax_compilation_cache_dir)  # type: ignore
    return on and jax.__version_info__ < (0, 11)


class _Runs:
    """Sees programs run: those with effects in Python, the others through JAX's post hook."""

    def __init__(self) -> None:
        self._watcher: Watcher | None = None
        self._by_executable: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._by_function: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._undo = contextlib.ExitStack()
        self._watching = False
        self._unmask: Callable[[], None] = lambda: None

    def start(self, watcher: Watcher) -> None:
        """Tells `watcher` from now on, of programs that were compiled before too."""
        self._watcher = watcher
        if self._by_executable:
            self._watch()

    def stop(self) -> None:
        """Tells nobody, and puts JAX back as it was."""
        self._watcher = None
        self._watching = False
        self._undo.close()

    def _watch(self) -> None:
        if not self._watching:
            self._watching = True
            self._watch_python()
            self._watch_fast_path()
        self._unmask()

    def expect(self, program: Any, executable: Any, effects: bool, called_by: Any) -> None:
        """Runs of `executable` are runs of `program`; says so where they will be seen."""
        run = getattr(executable, "unsafe_call", None)
        if run is None or not (effects or called_by is not None):
            return
        self._watch()
        watcher = self._watcher
        if watcher is None:
            return
        try:
            self._by_executable[run] = program
            if not effects:  # from its second run on it does not come through Python
                # The hook does not say which program of a function ran.
                several = called_by in self._by_function
                if several and self._by_function[called_by] is not None:
                    watcher.lost_count(self._by_function[called_by])
                self._by_function[called_by] = None if several else program
                if several:
                    return
        except TypeError:  # not to be held weakly
            return
        watcher.counts(program)

    def _watch_python(self) -> None:
        kind = getattr(_pxla, "ExecuteReplicated", None)
        if kind is None:
            return
        original = kind.__call__

        @functools.wraps(original)
        def call(executable: Any, *args: Any) -> Any:
            program, watcher = self._by_executable.get(executable), self._watcher
            if program is not None and watcher is not None:
                watcher.ran(program)
                self._unmask()
            return original(executable, *args)

        def undo() -> None:
            if kind.__call__ is call:
                kind.__call__ = original

        kind.__call__ = call
        self._undo.callback(undo)

    def _watch_fast_path(self) -> None:
        state = getattr(_api, "_post_hook_state", None)
        if state is None:
            return
        previous = state.get_global()

        def hook(function: Any, args: Any, kwargs: Any, output: Any) -> None:
            if previous is not None:
                previous(function, args, kwargs, output)
            called = getattr(function, "__wrapped__", None)
            program = None if called is None else self._by_function.get(called)
            watcher = self._watcher
            if program is not None and watcher is not None:
                watcher.ran(program)

        def unmask() -> None:
            # jax.debug_nans(False), which JAX itself enters in many places (vmap, jnp.var), leaves
            # the thread with no hook of its own instead of with the one of all threads.
            if previous is None and state.get_local() is None and state.get_global() is hook:
                state.set_local(_api.config_ext.unset)

        def undo() -> None:
            self._unmask = lambda: None
            if state.get_global() is hook:
                state.set_global(previous)

        if hasattr(getattr(_api, "config_ext", None), "unset"):
            self._unmask = unmask
        state.set_global(hook)
        self._undo.callback(undo)


_runs = _Runs()  # programs outlive the recorders that heard of them
