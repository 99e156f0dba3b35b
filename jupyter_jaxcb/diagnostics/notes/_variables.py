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
from ._choice import numbers_watched
from ._contexts import is_watching, key, paused
from ._lines import Loop, Running, leaves, loops, stores
from ._note import Note, Options
from ._place import Place
from ._received import Block, Facts, Store
from ._reductions import numbers_of, values_sent

MOST_ARRAYS = 16  # of one variable
_NO_ARRAYS = {bool, int, float, str, bytes, type(None)}  # for speed
_DISPATCH = os.path.dirname(dispatch.__file__)
_CALLBACKS_OF_JAX = {
    inspect.unwrap(function).__code__.co_filename
    for function in (jax.pure_callback, jax.debug.callback)
}
_COMPREHENSIONS = {"<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"}


class Following:
    """The trace function of a block, for `sys.settrace`."""

    def __init__(self, store: Store, options: Options) -> None:
        self._store, self._options = store, options
        self._running: list[Running] = []  # the outermost first
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

    def iterations(self) -> tuple[int, ...]:
        """Return the iterations of the Python loops that run now, the outermost first."""
        return tuple(n for running in self._running for n in running.iterations())

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
        running = Running(frame, outside)
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
            self._store.iterations = self.iterations()
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

    def _note(self, frame: FrameType, running: Running, name: str, value: Any) -> None:
        if type(value) in _NO_ARRAYS or not is_watching():
            return
        code = frame.f_code
        kind = numbers_watched(
            self._options.names, name, code.co_name, code.co_filename, running.line
        )
        if kind is None:
            return
        with paused():
            found = [pair for pair in leaves(name, value) if _counts(*pair, kind, running)]
            if len(found) > MOST_ARRAYS:
                self._store.left_out[name] = len(found) - MOST_ARRAYS
        for label, x in found[:MOST_ARRAYS]:
            running.noted[label] = weakref.ref(x)
            place = _place(code, code.co_filename, running.line, label)
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
            self._blocks[of] = block = Block()
            values = values_sent(x.shape, ())
            facts = Facts(note, x.shape, str(x.dtype), (), 1, wide, values=values)
            block.facts.append(facts)
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


def _counts(label: str, x: Any, kind: Any, running: Running) -> bool:
    """Return whether an array is to be noted: under each name that is chosen, else under one."""
    each = kind is jnp.number
    is_noted = any(
        x is noted() for name, noted in running.noted.items() if name == label or not each
    )
    return not is_noted and bool(jnp.issubdtype(x.dtype, kind))


def _value(frame: FrameType, name: str) -> Any:
    return frame.f_locals[name] if name in frame.f_locals else frame.f_globals.get(name)


@functools.lru_cache(maxsize=4096)
def _place(code: Any, file: str, line: int, label: str) -> Place:
    source = linecache.getline(file, line).strip()
    return Place(file, line, code.co_name, source, label, ())
