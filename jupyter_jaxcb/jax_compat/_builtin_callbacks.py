"""JAX's own callbacks: where they are bound, batched, lowered and called, and what they hold.

Checked against JAX 0.10.2, 0.11.2 and 0.12.0. This package's own callbacks do not need it.
If JAX's internals have moved, `watch_traces` and `watch_calls` raise before they change anything.
The value that a bind holds may be any callable, so only its type and what Python itself stores is
read: even ``isinstance`` could run user code.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import importlib
import inspect
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Annotated, Any, Protocol

import jax

from ._private import Changes

_CALLBACK = "jax._src.callback"
_DEBUGGING = "jax._src.debugging"
# flavor, module, primitive, and the parameter that holds the callback.
_PRIMITIVES = (
    ("jax pure", _CALLBACK, "pure_callback_p", "callback"),
    ("jax io", _CALLBACK, "io_callback_p", "callback"),
    ("jax debug", _DEBUGGING, "debug_callback_p", "callback"),
    ("jax debug", _DEBUGGING, "debug_print_p", "fmt"),
    ("jax buffer", "jax._src.buffer_callback", "buffer_callback_p", "callback"),
)
# The functions that make host calls, each where JAX looks it up: module, owner in it, name.
_HOST_CALLS = (
    ("jax pure", "jax._src", "callback", "pure_callback_impl"),
    ("jax io", "jax._src", "callback", "io_callback_impl"),
    ("jax debug", "jax._src", "debugging", "debug_callback_impl"),
    ("jax debug", _DEBUGGING, "debug_callback_p", "impl"),
)
# JAX compiles a program for eager calls of these.
_COMPILED_WHEN_EAGER = {"pure_callback_p", "io_callback_p", "buffer_callback_p"}
_PRINTS = "_format_print_callback"  # the function that a lowered print calls
_Held = Annotated[Any, "jax._src.callback._FlatCallback"]
_MAKES_PRINTS = "_make_flat_callback"  # the function in `_DEBUGGING` that makes print callbacks


class BuiltinWatcher(Protocol):
    """Watches JAX's own callbacks, and may replace the held value by an equal one.

    The held value is the parameter of a bind that says what is called; for a print, its format.
    """

    def bound(self, flavor: str, held: Any) -> Any:
        """Handle a bind; return the value it should hold."""
        ...

    def batched(
        self, flavor: str, held: Any, method: str, size: int, batched: tuple[bool, ...]
    ) -> Any:
        """Handle a bind under vmap; return the value the batched binds should hold."""
        ...

    def lowered(
        self, flavor: str, ctx: Any, held: Any, params: dict[str, Any]
    ) -> Callable[[Any], Any] | None:
        """Handle a bind that is lowered; return a function that wraps the callback, or None."""
        ...

    def eager(
        self, held: Any, kept: Callable[[Any], Any] | None
    ) -> contextlib.AbstractContextManager[Any]:
        """Return a context manager around an eager call, which yields the value it should hold.

        JAX compiles one program for all equal eager calls. `kept` returns the value that program
        holds, given the value for this call; it is None if there is no program.
        """
        ...

    def returned(self, held: Any, results: Any) -> None:
        """Handle the results of an eager call that JAX compiles a program for."""
        ...

    def called(self, flavor: str, callback: Any, operands: Any, results: Any) -> Any:
        """Handle a host call; return the function to call with JAX's arrays."""
        ...


class _Printing(threading.local):
    """The wrapper for the callback of the print that this thread is lowering or calling now."""

    make: Callable[[Any], Any] | None = None


_printing = _Printing()


def watch_traces(watcher: BuiltinWatcher, changes: Changes) -> None:
    """Report binds, batching and lowering of JAX's own callbacks, until `changes` are reverted.

    Calls are not reported, and cost nothing more.

    Raises:
        RuntimeError: if JAX's internals have moved; names the missing one.
    """
    _make(_changes_of_traces(watcher), changes)


def watch_calls(watcher: BuiltinWatcher, changes: Changes) -> None:
    """Report eager calls and host calls of JAX's own callbacks, until `changes` are reverted.

    Raises:
        RuntimeError: if JAX's internals have moved; names the missing one.
    """
    _make(_changes_of_calls(watcher), changes)


def _make(wanted: Iterator[_Change], changes: Changes) -> None:
    try:
        all_wanted = list(wanted)
    except (ImportError, AttributeError, KeyError, TypeError) as error:
        raise RuntimeError(
            f"cannot observe the callbacks of JAX {jax.__version__}: {error}. Install JAX 0.10.0 "
            "to 0.12.0, or a newer jupyter_jaxcb."
        ) from error
    for change in all_wanted:
        changes.make(change.make, change.undo)


class _Change:
    """A replacement of one entry of a namespace or table."""

    def __init__(self, table: Any, key: Any, new: Any) -> None:
        self._table = table  # a dict
        self._key = key
        self._new = new
        self._there = key in table
        self._old = table.get(key)

    def make(self) -> None:
        """Replace the entry."""
        self._table[self._key] = self._new

    def undo(self) -> None:
        """Restore the entry, unless something else has replaced it since."""
        if self._table.get(self._key) is not self._new:
            return
        if self._there:
            self._table[self._key] = self._old
        else:
            del self._table[self._key]


def _changes_of_traces(watcher: BuiltinWatcher) -> Iterator[_Change]:
    batching: Any = importlib.import_module("jax._src.interpreters.batching")
    mlir: Any = importlib.import_module("jax._src.interpreters.mlir")
    for flavor, module, name, slot in _PRIMITIVES:
        primitive = getattr(importlib.import_module(module), name)
        attributes = vars(primitive)
        yield _Change(attributes, "bind", _binding(watcher, flavor, slot, primitive.bind))
        batchers = batching.fancy_primitive_batchers
        batcher = _batching(watcher, flavor, slot, batchers[primitive])
        yield _Change(batchers, primitive, batcher)
        tables = [mlir._lowerings, *mlir._platform_specific_lowerings.values()]
        found = [table for table in tables if primitive in table]
        if not found:
            raise KeyError(f"no lowering of {name}")
        for table in found:
            rule = _lowering(watcher, flavor, slot, table[primitive].rule)
            yield _Change(table, primitive, dataclasses.replace(table[primitive], rule=rule))
    debugging: Any = importlib.import_module(_DEBUGGING)
    yield _Change(vars(debugging), _MAKES_PRINTS, _making_print(getattr(debugging, _MAKES_PRINTS)))


def _changes_of_calls(watcher: BuiltinWatcher) -> Iterator[_Change]:
    for _, module, name, slot in _PRIMITIVES:
        primitive = getattr(importlib.import_module(module), name)
        if name != "debug_callback_p":
            keeps = _program_keeps(primitive, slot) if name in _COMPILED_WHEN_EAGER else None
            yield _Change(vars(primitive), "impl", _eager(watcher, slot, keeps, primitive.impl))
    for flavor, module, owner, name in _HOST_CALLS:
        place = getattr(importlib.import_module(module), owner)
        yield _Change(vars(place), name, _calling(watcher, flavor, getattr(place, name)))
    yield from _changes_of_blocks(watcher)


def _changes_of_blocks(watcher: BuiltinWatcher) -> Iterator[_Change]:
    """Yield the changes for debug callbacks in a ``shard_map`` without jit."""
    debugging: Any = importlib.import_module(_DEBUGGING)
    rules: Any = importlib.import_module("jax._src.shard_map").eager_rules
    for primitive, around in (
        (debugging.debug_callback_p, _calling_blocks),
        (debugging.debug_print_p, _printing_blocks),
    ):
        if primitive not in rules:
            raise KeyError(f"no eager rule of {primitive} in a shard_map")
        yield _Change(rules, primitive, around(watcher, rules[primitive]))


def _binding(watcher: BuiltinWatcher, flavor: str, slot: str, original: Callable) -> Callable:
    @functools.wraps(original)
    def bind(*args: Any, **params: Any) -> Any:
        params[slot] = watcher.bound(flavor, params[slot])
        return original(*args, **params)

    return bind


def _batching(watcher: BuiltinWatcher, flavor: str, slot: str, original: Callable) -> Callable:
    def batch(*given: Any, **params: Any) -> Any:
        *_, args, dims = given
        batched = tuple(isinstance(dim, int) for dim in dims)
        sizes = [x.shape[dim] for x, dim in zip(args, dims, strict=True) if isinstance(dim, int)]
        if sizes:
            method = params.get("vmap_method") or "sequential"  # io and debug have no other
            params[slot] = watcher.batched(flavor, params[slot], method, sizes[0], batched)
        return original(*given, **params)

    return batch


def _lowering(watcher: BuiltinWatcher, flavor: str, slot: str, original: Callable) -> Callable:
    def lower(ctx: Any, *args: Any, **params: Any) -> Any:
        make = watcher.lowered(flavor, ctx, params[slot], params)
        if make is None:
            return original(ctx, *args, **params)
        if slot == "callback":
            params[slot] = make(params[slot])
            return original(ctx, *args, **params)
        _printing.make = make
        try:
            return original(ctx, *args, **params)
        finally:
            _printing.make = None

    return lower


def _making_print(original: Callable) -> Callable:
    @functools.wraps(original)
    def make(*args: Any, **kwargs: Any) -> Any:
        callback = original(*args, **kwargs)
        change, _printing.make = _printing.make, None
        return callback if change is None else change(callback)

    return make


Keeps = Callable[[dict[str, Any], Any], Any]


def _program_keeps(primitive: Any, slot: str) -> Keeps:
    """Return a function that reads the value held by the program of an eager call.

    JAX compiles one program for all equal calls, which keeps the value that the first of them held.
    Host calls are made with that value, which is the only way to recognize them.

    Raises:
        KeyError: if the program does not keep its parameters where they are expected.
    """
    dispatch: Any = importlib.import_module("jax._src.dispatch")
    programs = dispatch.xla_primitive_callable
    codes = inspect.unwrap(programs).__code__.co_consts
    if not any(isinstance(code, CodeType) and "params" in code.co_freevars for code in codes):
        raise KeyError("no params in xla_primitive_callable")

    def keeps(params: dict[str, Any], own: Any) -> Any:
        # JAX does the same next and raises the error itself, for example if this is not hashable.
        with contextlib.suppress(Exception):
            function = programs(primitive, **{**params, slot: own}).__wrapped__
            names = function.__code__.co_freevars
            return function.__closure__[names.index("params")].cell_contents[slot]
        return own

    return keeps


def _eager(watcher: BuiltinWatcher, slot: str, keeps: Keeps | None, original: Callable) -> Callable:
    def impl(*args: Any, **params: Any) -> Any:
        kept = None if keeps is None else functools.partial(keeps, params)
        with watcher.eager(params[slot], kept) as held:
            results = original(*args, **{**params, slot: held})
        if keeps is not None:
            watcher.returned(params[slot], results)
        return results

    return impl


def _calling(watcher: BuiltinWatcher, flavor: str, original: Callable) -> Callable:
    @functools.wraps(original)
    def call(*args: Any, callback: Any, **params: Any) -> Any:
        callback = watcher.called(flavor, callback, args, params.get("result_avals", ()))
        return original(*args, callback=callback, **params)

    return call


def _calling_blocks(watcher: BuiltinWatcher, original: Callable) -> Callable:
    @functools.wraps(original)
    def rule(mesh: Any, *args: Any, callback: Any, **params: Any) -> Any:
        callback = watcher.called("jax debug", callback, _blocks(args), ())
        return original(mesh, *args, callback=callback, **params)

    return rule


def _printing_blocks(watcher: BuiltinWatcher, original: Callable) -> Callable:
    @functools.wraps(original)
    def rule(mesh: Any, *args: Any, fmt: Any, **params: Any) -> Any:
        with watcher.eager(fmt, None) as held:
            _printing.make = lambda made: watcher.called("jax debug", made, _blocks(args), ())
            try:
                return original(mesh, *args, fmt=held, **params)
            finally:
                _printing.make = None

    return rule


def _blocks(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the shape one device has of each argument; the first axis is the devices."""
    return tuple(jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in args)


def _is_flat(held: Any) -> bool:
    """Return whether a bind of a pure or io callback holds `held`."""
    return type(held) is getattr(importlib.import_module(_CALLBACK), "_FlatCallback", None)


def copy_of(held: Any) -> Any:
    """Return an equal callback of JAX's own API that is another object; None for other types.

    Calling it costs as much as calling `held`.
    """
    if _is_flat(held):
        return copy.copy(held)
    if type(held) is not FunctionType:
        return None
    function = FunctionType(
        held.__code__, held.__globals__, held.__name__, held.__defaults__, held.__closure__
    )
    function.__kwdefaults__ = held.__kwdefaults__
    function.__dict__.update(held.__dict__)
    return function


def user_arguments(held: Any) -> tuple[Any, Any] | None:
    """Return what a pure or io callback of JAX's own API calls, and the tree of its arguments.

    None for other binds.
    """
    if not _is_flat(held):
        return None
    function, in_tree = getattr(held, "callback_func", None), getattr(held, "in_tree", None)
    return None if function is None or in_tree is None else (function, in_tree)


def user_function(held: Any) -> Any:
    """Return the user's function that a bind of JAX's own API calls; None for a print.

    If JAX stores it somewhere unexpected, return the function that JAX calls.
    """
    kind = type(held)
    if issubclass(kind, str):
        return None
    function: Any = held
    if _is_flat(held):
        flat: _Held = held
        function = getattr(flat, "callback_func", held)
    elif kind is FunctionType and held.__module__ == _DEBUGGING:
        names, cells = held.__code__.co_freevars, held.__closure__ or ()
        with contextlib.suppress(ValueError):  # an empty cell
            parts = {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
            function = parts.get("callback", held)
    inner: Any = without_partials(function)
    prints = type(inner) is FunctionType and inner.__name__ == _PRINTS
    return None if prints and inner.__module__ == _DEBUGGING else function


def without_partials(function: Any) -> Any:
    """Return what a `functools.partial` calls in the end."""
    while issubclass(type(function), functools.partial):  # it may lie about its class, or raise
        function = function.func
    return function
