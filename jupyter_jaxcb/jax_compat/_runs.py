"""Detect runs of programs, find those that are not known to be done, and join JAX's wait for them.

Callbacks work without this module. If a later JAX lacks one of its pieces, the recording has fewer
runs, blocks wait for fewer programs, an interrupt refuses fewer calls, and `jax.effects_barrier`
does not wait for the calls of queued callbacks.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Annotated, Any, Protocol

import jax

from ._private import Changes, JaxFunction, optional_module
from ._required import runtime_tokens

_api = optional_module("jax._src.api")
_pxla = optional_module("jax._src.interpreters.pxla")
Executable = Annotated[Any, "jax._src.interpreters.pxla.MeshExecutable"]
_Token = Annotated[Any, "jax._src.core.Token"]
_RUN = JaxFunction("jax._src.interpreters.pxla", "__call__")  # every run with host callbacks


class RunWatcher(Protocol):
    """Receives events about runs of programs."""

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
        self._watcher: RunWatcher | None = None
        self._by_executable: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._by_function: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._changes = Changes()
        self._lock = threading.RLock()  # reentrant: the garbage collector may call this again
        self._watching = False
        self._unmask: Callable[[], None] = lambda: None

    def start(self, watcher: RunWatcher) -> None:
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


def is_in_run(frame: FrameType | None) -> bool:
    """Return whether a thread is in the run of a program at `frame`; False if it is in C++ only.

    Programs with host callbacks are run from Python.
    """
    while frame is not None and not _RUN.is_run_by(frame.f_code):
        frame = frame.f_back
    return frame is not None


# The smallest result of each unfinished run, so that it can be waited for even if the user drops
# the result. These are the user's own objects: donating one deletes it in this list too.
_runs: collections.deque[Any] = collections.deque()


def note_run(results: Any) -> None:
    """Note a run by its results, and drop the results of finished runs."""
    if _runs:
        _drop_finished()
    own = [results] if hasattr(results, "is_ready") else jax.tree.leaves(results)
    if own and hasattr(own[0], "is_ready") and not is_done(own[0]):
        arrays = [array for array in own if hasattr(array, "is_ready")]
        _runs.append(min(arrays, key=lambda array: array.nbytes))


def _drop_finished() -> None:
    with contextlib.suppress(IndexError):  # another thread may do the same
        while is_done(_runs[0]):
            _runs.popleft()


def unfinished_runs() -> list[Any]:
    """Return an array of each noted run that is not done, whichever thread dispatched it."""
    return [array for array in list(_runs) if not is_done(array)]


def unfinished_arrays() -> list[Any]:
    """Return all live arrays that are still being computed, and ordered tokens, which hold arrays.

    Includes an array of each noted run, even if the user has dropped its results.
    """
    ordered = map(_array_in, runtime_tokens.current_tokens.values())
    found = [
        *jax.live_arrays(),
        *_runs,
        *(array for array in ordered if hasattr(array, "is_ready")),
    ]
    return [array for array in found if not is_done(array)]


def _array_in(token: _Token) -> Any:
    return getattr(token, "_buf", None)


def unfinished_tokens() -> list[Any]:
    """Return the tokens of programs with unordered effects, which can only be waited for."""
    return list(runtime_tokens.output_runtime_tokens.values())


def is_done(array: Any) -> bool:
    """Return whether an array is computed, has failed, or is deleted."""
    return array.is_deleted() or array.is_ready()


def after_barriers(wait: Callable[[], None], settle: Callable[[], None]) -> None:
    """Extend every `jax.effects_barrier`, and JAX's own one at exit.

    Args:
        wait: called if the barrier raises the error of a program.
        settle: called otherwise; may raise.
    """
    kind: Any = type(runtime_tokens)
    original = getattr(kind, "block_until_ready", None)
    if original is None:
        return

    @functools.wraps(original)
    def block_until_ready(self: Any) -> None:
        __tracebackhide__ = True
        try:
            original(self)
        except Exception:
            wait()
            raise
        settle()

    kind.block_until_ready = block_until_ready
