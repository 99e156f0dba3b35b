"""Hook into the runs of compiled programs.

Callbacks work without this module. If a later JAX lacks one of its pieces, less is known about the
runs, and the recording says so.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Annotated, Any, Protocol

from ._changes import Changes
from ._optional import optional_module
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

    def counts(self, program: Any) -> None:
        """Handle a program whose runs will all be reported."""
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
        watcher.counts(program)

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
            self._watcher.counts(program)

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
