"""Runs of compiled programs.

Nothing in here is needed for callbacks to work: where a piece is gone in a later JAX, less is known
of the runs, and the recording says so.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from ._changes import Changes
from ._tokens import note_run

try:
    from jax._src import api as _api
    from jax._src.interpreters import pxla as _pxla
except ImportError:
    _api: Any = None
    _pxla: Any = None

# Called when a program has been compiled: with what reads its optimised HLO, and the nanoseconds
# that lowering and compiling took.
Compiled = Callable[[Callable[[], bytes], int, int], Any]


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


_MAKES = "create_cpp_call"  # a method of JAX's executables


class RunWatch:
    """Sees programs run: those with effects in Python, the others through JAX's post hook."""

    def __init__(self) -> None:
        self._watcher: Watcher | None = None
        self._by_executable: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._by_function: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._changes = Changes()
        self._lock = threading.RLock()  # garbage is collected anywhere
        self._watching = False
        self._unmask: Callable[[], None] = lambda: None

    def start(self, watcher: Watcher) -> None:
        """Tells `watcher` from now on, of programs that were compiled before too."""
        self._watcher = watcher
        self._watch()

    def stop(self) -> None:
        """Tells nobody, and puts JAX back as it was."""
        self._watcher = None
        with self._lock:
            self._watching = False
            self._changes.revert()

    def _watch(self) -> None:
        with self._lock:
            if not self._watching and self._watcher is not None:
                self._changes.revert()  # what an interrupt has left
                self._watch_python()
                self._watch_fast_path()
                self._watching = True
        self._unmask()

    def expect(
        self, program: Any, executable: Any, effects: bool, ahead: bool, called_by: Any
    ) -> None:
        """Runs of `executable` are runs of `program`; says so where they will be seen."""
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
            if not effects:  # from its second run on it does not come through Python
                # The hook does not say which program of a function ran.
                known = self._by_function.get(called_by, program)
                several = known != program
                if several and known is not None:
                    watcher.lost_count(known)
                self._by_function[called_by] = None if several else program
                if several:
                    return
        except TypeError:  # not to be held weakly
            return
        watcher.counts(program)

    def _expect_ahead(self, program: Any, executable: Any) -> None:
        """Runs of `executable`, which was compiled ahead of time, are runs of `program`.

        Its first run comes through Python; for later ones JAX makes a function in C++, if the
        program has no host callbacks left.
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
        except (TypeError, AttributeError):  # not to be held weakly, or closed
            return
        if self._watcher is not None:
            self._watcher.counts(program)

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
        state = getattr(_api, "_post_hook_state", None)
        if state is None:
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
            # jax.debug_nans(False), which JAX itself enters in many places (vmap, jnp.var), leaves
            # the thread with no hook of its own instead of with the one of all threads.
            if previous is None and state.get_local() is None and state.get_global() is hook:
                state.set_local(_api.config_ext.unset)

        def undo() -> None:
            self._unmask = lambda: None
            if state.get_global() is hook:
                state.set_global(previous)

        self._changes.make(lambda: state.set_global(hook), undo)
        if hasattr(getattr(_api, "config_ext", None), "unset"):
            self._unmask = unmask


runs = RunWatch()  # programs outlive the recorders that heard of them
