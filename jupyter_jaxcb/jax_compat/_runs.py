"""Detect runs of programs, and remember those that are not known to be done."""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Annotated, Any, Protocol

import jax

from ._subjects import Changes, is_on, module

_api, _pxla = module("api"), module("interpreters.pxla")
Executable = Annotated[Any, "jax._src.interpreters.pxla.MeshExecutable"]


class RunWatcher(Protocol):
    """Receives events about runs of programs."""

    def started_counting(self, program: Any) -> None:
        """Handle a program whose runs are all reported from now on."""

    def ran(self, program: Any) -> None:
        """Handle a run of a program."""

    def lost_count(self, program: Any) -> None:
        """Handle a program whose runs can no longer be reported."""


class RunWatch:
    """Detects runs of programs: those with effects in Python, the others by JAX's post hook."""

    def __init__(self) -> None:
        self._watcher: RunWatcher | None = None
        self._by_executable: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._by_function: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._changes = Changes()
        self._lock = threading.RLock()  # reentrant: the garbage collector may call this again
        self._watching = False
        self._unmask: Callable[[], None] = lambda: None

    def start(self, watcher: RunWatcher) -> None:
        """Report runs to `watcher` from now on, including those of programs compiled earlier."""
        if is_on("runs"):
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
        if not (is_on("runs") and (ahead or effects or called_by is not None)):
            return
        self._watch()
        if self._watcher is None and not ahead:
            return
        self._by_executable[executable.unsafe_call] = program
        if ahead:
            self._expect_ahead(program, executable)
        elif not (effects or self._expect_fast(program, called_by)):
            return
        if self._watcher is not None:
            self._watcher.started_counting(program)

    def _expect_fast(self, program: Any, called_by: Any) -> bool:
        """Note the function of a program that uses the C++ fast path from the second run on.

        The hook does not say which program of a function ran, so return whether it is the only one.
        """
        try:
            known = self._by_function.get(called_by, program)
            is_only = known == program
            self._by_function[called_by] = program if is_only else None
        except TypeError:  # a function without weak references
            return False
        if not is_only and known is not None and self._watcher is not None:
            self._watcher.lost_count(known)
        return is_only

    def _expect_ahead(self, program: Any, executable: Executable) -> None:
        """Note the C++ function of an executable that was compiled ahead of time.

        Its first run goes through Python. If the program has no host callbacks left, JAX makes a
        C++ function for later runs.
        """
        make = type(executable).create_cpp_call
        this = weakref.ref(executable)  # the attribute must not keep its own object alive

        def make_and_note(*args: Any, **kwargs: Any) -> Any:
            function = make(this(), *args, **kwargs)
            if function is not None:
                self._by_function[function] = program
            return function

        executable.create_cpp_call = make_and_note

    def _watch_python(self) -> None:
        kind = _pxla.ExecuteReplicated
        original = kind.__call__

        @functools.wraps(original)
        def call(executable: Any, *args: Any) -> Any:
            __tracebackhide__ = True
            program, watcher = self._by_executable.get(executable), self._watcher
            if program is not None and watcher is not None:
                watcher.ran(program)
                self._unmask()
            begun = object()
            try:
                in_dispatch[begun] = program
                results = original(executable, *args)
                note_run(results, program)
            finally:
                in_dispatch.pop(begun, None)  # an interrupt may come before it is there
            return results

        self._changes.set(kind, "__call__", call)

    def _watch_fast_path(self) -> None:
        state: Any = _api._post_hook_state
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
        self._unmask = unmask


runs = RunWatch()  # global, because programs outlive recorders


# The smallest result of each unfinished run, so that it can be waited for even if the user drops
# the result. These are the user's own objects: donating one deletes it in this list too.
noted_runs: collections.deque[Any] = collections.deque()
# The same with the program of each run, and the programs that are being dispatched.
_programs_of_runs: collections.deque[tuple[Any, Any]] = collections.deque()
in_dispatch: dict[object, Any] = {}


def note_run(results: Any, program: Any = None) -> None:
    """Note a run by its results, and drop the results of finished runs."""
    with contextlib.suppress(IndexError):  # another thread may do the same
        while noted_runs and is_done(noted_runs[0]):
            noted_runs.popleft()
        while _programs_of_runs and is_done(_programs_of_runs[0][1]):
            _programs_of_runs.popleft()
    own = [results] if hasattr(results, "is_ready") else jax.tree.leaves(results)
    if own and hasattr(own[0], "is_ready") and not is_done(own[0]):
        arrays = [array for array in own if hasattr(array, "is_ready")]
        smallest = min(arrays, key=lambda array: array.nbytes)
        noted_runs.append(smallest)
        if program is not None:
            _programs_of_runs.append((program, smallest))


def unfinished_runs() -> list[Any]:
    """Return an array of each noted run that is not done, whichever thread dispatched it."""
    return [array for array in list(noted_runs) if not is_done(array)]


def unfinished_programs() -> set[Any]:
    """Return the watched programs of which a run is not known to be done, of any thread."""
    noted = {program for program, array in list(_programs_of_runs) if not is_done(array)}
    return noted | {program for program in list(in_dispatch.values()) if program is not None}


def is_done(array: Any) -> bool:
    """Return whether an array is computed, has failed, or is deleted."""
    return array.is_deleted() or array.is_ready()
