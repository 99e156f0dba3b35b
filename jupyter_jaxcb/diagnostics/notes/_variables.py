"""Note the variables of the user's functions, line by line, while they run or are traced."""

from __future__ import annotations

import contextlib
import functools
import inspect
import linecache
import os
import sys
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ... import jax_compat
from ...stack import dispatch
from ...stack.trace import is_user_code
from ._binding import note_variable
from ._context import is_watching, key, paused
from ._note import Note
from ._numbers import numbers_of, values_sent
from ._options import Options, numbers_watched
from ._source import Loop, Place, loops, stores
from ._store import Block, Facts, Store

MOST_ARRAYS = 16  # of one variable
_NO_ARRAYS = {bool, int, float, str, bytes, type(None)}  # for speed
_DISPATCH = os.path.dirname(dispatch.__file__)
_CALLBACKS_OF_JAX = {
    inspect.unwrap(function).__code__.co_filename
    for function in (jax.pure_callback, jax.debug.callback)
}
_COMPREHENSIONS = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


class _Running:
    """A function of the user that runs: its line, and the iterations of its loops."""

    def __init__(self, frame: FrameType, outside: Sequence[Loop] = ()) -> None:
        self._loops = [loop for loop in loops(frame.f_code) if loop not in outside]
        self._iterations: dict[Loop, int] = {}
        self.line = frame.f_lineno
        self.has_failed = False  # an exception left the line before it assigned anything
        # The last array that is noted under each name, which the user may delete.
        self.noted: dict[str, weakref.ref[Any]] = {}

    def reaches(self, line: int) -> None:
        """Count the iterations."""
        for loop in self._loops:
            if line == loop.header:
                inside = loop.header <= self.line <= loop.last and loop in self._iterations
                self._iterations[loop] = self._iterations[loop] + 1 if inside else 0
        self.line, self.has_failed = line, False

    def iterations(self) -> list[int]:
        """Return the iteration of each loop around the line, the outermost first."""
        around = [loop for loop in self._loops if loop.header <= self.line <= loop.last]
        return [self._iterations.get(loop, 0) for loop in around]


class Following:
    """The trace function of a block, for `sys.settrace`."""

    def __init__(self, store: Store, options: Options) -> None:
        self._store, self._options = store, options
        self._running: list[_Running] = []  # the outermost first
        # What a note of the block's last line raised. Python calls no `__exit__` if the trace
        # function raises on the way there, so `__exit__` raises it.
        self.failure: BaseException | None = None
        self._blocks: dict[Any, Block] = {}
        self._is_on_host = False

    def start(self, frame: FrameType) -> None:
        """Follow the functions that are called from now on, and `frame`, which runs."""
        self._before = sys.gettrace(), frame.f_trace
        self._first, self._own = frame, None
        self._header = line = frame.f_lineno
        if _has_lines(frame.f_code.co_filename):
            around = [loop for loop in loops(frame.f_code) if loop.header <= line <= loop.last]
            frame.f_trace = self._own = self._enter(frame, around)
        sys.settrace(self._called)

    def stop(self) -> None:
        """Follow no more; leave a debugger that was started in the block as it is."""
        function, of_frame = self._before
        if self.is_on():
            sys.settrace(function)
        if self._own is not None:
            if self._first.f_trace is self._own:
                self._first.f_trace = of_frame
            self._own(self._first, "line", None)  # a block in one line has no other end

    def is_on(self) -> bool:
        """Return whether no other trace function has taken its place in this thread."""
        return sys.gettrace() == self._called

    def _called(self, frame: FrameType, event: str, _: Any) -> Any:
        if self._is_on_host:
            return None
        if _makes_host_calls(frame.f_code.co_filename):
            self._is_on_host, frame.f_trace_lines = True, False
            return self._on_host
        return self._enter(frame) if _has_lines(frame.f_code.co_filename) else None

    def _on_host(self, frame: FrameType, event: str, _: Any) -> Any:
        """Follow no line of a host function, which runs as fast as outside of the block."""
        if event == "return":
            self._is_on_host = False
        return self._on_host

    def _enter(self, frame: FrameType, outside: Sequence[Loop] = ()) -> Callable[..., Any]:
        running = _Running(frame, outside)
        self._running.append(running)
        names = stores(frame.f_code)

        def follow(frame: FrameType, event: str, returned: Any) -> Any:
            if event == "exception":
                # Iterators end with StopIteration, and the line goes on.
                running.has_failed = not issubclass(returned[0], StopIteration)
                return follow
            if not running.has_failed:
                with self._until_exit(frame):
                    for name in names.get(running.line, ()):
                        self._note(frame, running, name, _value(frame, name))
            if event == "return":
                if frame.f_code.co_name not in _COMPREHENSIONS:
                    self._note(frame, running, f"{frame.f_code.co_name}()", returned)
                self._running.remove(running)
                return None
            if running.iterations() and jax_compat.jaxpr_trace() is None:
                jax.effects_barrier()  # so that what arrives later belongs to the next iteration
            running.reaches(frame.f_lineno)
            self._store.iterations = tuple(n for each in self._running for n in each.iterations())
            return follow

        return follow

    @contextlib.contextmanager
    def _until_exit(self, frame: FrameType) -> Iterator[None]:
        """Keep what is raised where the block ends: its frame is at the ``with`` again."""
        try:
            yield
        except BaseException as error:
            if frame is not self._first or frame.f_lineno != self._header:
                raise
            self.failure = error

    def _note(self, frame: FrameType, running: _Running, name: str, value: Any) -> None:
        if type(value) in _NO_ARRAYS or not is_watching():
            return
        code, line = frame.f_code, running.line
        kind = numbers_watched(self._options.names, name, code.co_name, code.co_filename, line)
        if kind is None:
            return
        with paused():
            arrays = [pair for pair in _arrays(name, value) if _counts(*pair, kind, running)]
        if len(arrays) > MOST_ARRAYS:
            self._store.left_out[name] = len(arrays) - MOST_ARRAYS
        for label, x in arrays[:MOST_ARRAYS]:
            running.noted[label] = weakref.ref(x)
            source = linecache.getline(code.co_filename, line).strip()
            place = Place(code.co_filename, line, code.co_name, source, label)
            if isinstance(x, Tracer):
                note_variable(place, frame, x)
            elif x.is_fully_addressable and x.size and not x.is_deleted():
                self._keep(place, x)

    def _keep(self, place: Place, x: Any) -> None:
        """Keep the numbers of an array that no program computes any more."""
        of = place, x.shape, x.dtype
        if of not in self._blocks:
            wide = x.dtype in (jnp.float64, jnp.complex128)
            note = Note(place, self._options, rows=self._options.rows)
            values = values_sent(x.shape, ())
            facts = Facts(note, x.shape, str(x.dtype), (), 1, wide, values=values)
            self._blocks[of] = Block(facts)
        # Evaluated at once, also where JAX traces: a constant of the program.
        with paused(), key(None), jax.ensure_compile_time_eval():
            self._store.add_array(self._blocks[of], *numbers_of(x, self._options))


@functools.lru_cache(maxsize=4096)
def _makes_host_calls(file: str) -> bool:
    return os.path.dirname(file) == _DISPATCH or file in _CALLBACKS_OF_JAX


@functools.lru_cache(maxsize=4096)
def _has_lines(file: str) -> bool:
    """Return whether the user wrote `file`: not the methods that `dataclass` makes, for example."""
    return is_user_code(file) and bool(linecache.getlines(file))


def _arrays(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return the arrays in a value, with their names, such as ``params['w']``."""
    if isinstance(value, jax.Array):
        return [(name, value)]
    try:
        leaves, _ = jax.tree_util.tree_flatten_with_path(value)
    except Exception:  # not a tree: a dict with keys that have no order, a class in a bad state
        return []
    arrays = [(path, leaf) for path, leaf in leaves if isinstance(leaf, jax.Array)]
    return [(name + jax.tree_util.keystr(path), leaf) for path, leaf in arrays]


def _counts(label: str, x: Any, kind: Any, running: _Running) -> bool:
    """Return whether an array is to be noted: under each name that is chosen, else under one."""
    each = kind is jnp.number
    is_noted = any(
        x is noted() for name, noted in running.noted.items() if name == label or not each
    )
    return not is_noted and bool(jnp.issubdtype(x.dtype, kind))


def _value(frame: FrameType, name: str) -> Any:
    return frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)
