"""JAX's own callbacks: where they are bound, batched, lowered and called, and what they hold.

The value that a bind holds may be any callable, so only its type and what Python itself stores is
read: even ``isinstance`` could run user code.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import threading
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Protocol

import jax

from ._axes import varying_axes
from ._subjects import Changes, code_of, frames, module

_batching, _mlir = module("interpreters.batching"), module("interpreters.mlir")
_buffers, _callback, _debugging = module("buffer_callback"), module("callback"), module("debugging")
_dispatch, _shard_map = module("dispatch"), module("shard_map")
# flavor, module, primitive, and the parameter that holds the callback.
_PRIMITIVES = (
    ("jax pure", _callback, "pure_callback_p", "callback"),
    ("jax io", _callback, "io_callback_p", "callback"),
    ("jax debug", _debugging, "debug_callback_p", "callback"),
    ("jax debug", _debugging, "debug_print_p", "fmt"),
    ("jax buffer", _buffers, "buffer_callback_p", "callback"),
)
# JAX compiles a program for eager calls of these.
_COMPILED_WHEN_EAGER = {"pure_callback_p", "io_callback_p", "buffer_callback_p"}


class BuiltinWatcher(Protocol):
    """Watches JAX's own callbacks, and may replace the held value by an equal one.

    The held value is the parameter of a bind that says what is called; for a print, its format.
    """

    def bound(self, flavor: str, held: Any) -> Any:
        """Handle a bind; return the value it should hold."""

    def batched(
        self, flavor: str, held: Any, method: str, size: int, batched: tuple[bool, ...]
    ) -> Any:
        """Handle a bind under vmap; return the value the batched binds should hold."""

    def lowered(
        self, flavor: str, ctx: Any, held: Any, params: dict[str, Any]
    ) -> Callable[[Any], Any] | None:
        """Handle a bind that is lowered; return a function that wraps the callback, or None."""

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

    def called(self, flavor: str, callback: Any, operands: Any, results: Any) -> Any:
        """Handle a host call; return the function to call with JAX's arrays."""


class _Printing(threading.local):
    """The wrapper for the callback of the print that this thread is lowering or calling now."""

    make: Callable[[Any], Any] | None = None


_printing = _Printing()


def watch_traces(watcher: BuiltinWatcher, changes: Changes) -> None:
    """Report binds, batching and lowering of JAX's own callbacks, until `changes` are reverted.

    Calls are not reported, and cost nothing more.
    """
    batchers = _batching.fancy_primitive_batchers
    for flavor, place, name, slot in _PRIMITIVES:
        primitive = getattr(place, name)
        changes.put(vars(primitive), "bind", _binding(watcher, flavor, slot, primitive.bind))
        changes.put(batchers, primitive, _batched(watcher, flavor, slot, batchers[primitive]))
        for table in (_mlir._lowerings, *_mlir._platform_specific_lowerings.values()):
            if primitive in table:
                rule = _lowering(watcher, flavor, slot, table[primitive].rule)
                changes.put(table, primitive, dataclasses.replace(table[primitive], rule=rule))
    changes.set(_debugging, "_make_flat_callback", _making_print(_debugging._make_flat_callback))


def watch_calls(watcher: BuiltinWatcher, changes: Changes) -> None:
    """Report eager calls and host calls of JAX's own callbacks, until `changes` are reverted."""
    for _, place, name, slot in _PRIMITIVES:
        primitive = getattr(place, name)
        if name != "debug_callback_p":
            changes.put(vars(primitive), "impl", _eager(watcher, slot, primitive, name))
    # The functions that make host calls, each where JAX looks it up.
    for flavor, owner, name in (
        ("jax pure", _callback, "pure_callback_impl"),
        ("jax io", _callback, "io_callback_impl"),
        ("jax debug", _debugging, "debug_callback_impl"),
        ("jax debug", _debugging.debug_callback_p, "impl"),
    ):
        changes.put(vars(owner), name, _calling(watcher, flavor, getattr(owner, name)))
    # Debug callbacks in a `shard_map` without jit.
    rules = _shard_map.eager_rules
    calls, prints = _debugging.debug_callback_p, _debugging.debug_print_p
    changes.put(rules, calls, _calling(watcher, "jax debug", rules[calls], _blocks))
    changes.put(rules, prints, _printing_blocks(watcher, rules[prints]))


def _binding(watcher: BuiltinWatcher, flavor: str, slot: str, original: Callable) -> Callable:
    @functools.wraps(original)
    def bind(*args: Any, **params: Any) -> Any:
        params[slot] = watcher.bound(flavor, params[slot])
        return original(*args, **params)

    return bind


def _batched(watcher: BuiltinWatcher, flavor: str, slot: str, original: Callable) -> Callable:
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


def _eager(watcher: BuiltinWatcher, slot: str, primitive: Any, name: str) -> Callable:
    original, has_program = primitive.impl, name in _COMPILED_WHEN_EAGER

    def impl(*args: Any, **params: Any) -> Any:
        kept = functools.partial(_kept, primitive, slot, params) if has_program else None
        with watcher.eager(params[slot], kept) as held:
            results = original(*args, **{**params, slot: held})
        if has_program:
            watcher.returned(params[slot], results)
        return results

    return impl


def _kept(primitive: Any, slot: str, params: dict[str, Any], own: Any) -> Any:
    """Return the value held by the program of an eager call.

    JAX compiles one program for all equal calls, which keeps the value that the first of them held.
    Host calls are made with that value, which is the only way to recognize them.
    """
    # JAX does the same next and raises the error itself, for example if this is not hashable.
    with contextlib.suppress(Exception):
        programs = _dispatch.xla_primitive_callable
        function = programs(primitive, **{**params, slot: own}).__wrapped__
        names = function.__code__.co_freevars
        return function.__closure__[names.index("params")].cell_contents[slot]
    return own


def _calling(
    watcher: BuiltinWatcher, flavor: str, original: Callable, operands: Callable = tuple
) -> Callable:
    @functools.wraps(original)
    def call(*args: Any, callback: Any, **params: Any) -> Any:
        results = params.get("result_avals", ())
        callback = watcher.called(flavor, callback, operands(args), results)
        return original(*args, callback=callback, **params)

    return call


def _printing_blocks(watcher: BuiltinWatcher, original: Callable) -> Callable:
    @functools.wraps(original)
    def rule(*args: Any, fmt: Any, **params: Any) -> Any:
        with watcher.eager(fmt, None) as held:
            _printing.make = lambda made: watcher.called("jax debug", made, _blocks(args), ())
            try:
                return original(*args, fmt=held, **params)
            finally:
                _printing.make = None

    return rule


def _blocks(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what one device has of each array after the mesh; the first axis is the devices."""
    return tuple(jax.ShapeDtypeStruct(x.shape[1:], x.dtype) for x in args[1:])


def _is_flat(held: Any) -> bool:
    """Return whether a bind of a pure or io callback holds `held`."""
    return type(held) is _callback._FlatCallback


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
    return (held.callback_func, held.in_tree) if _is_flat(held) else None


def user_function(held: Any) -> Any:
    """Return the user's function that a bind of JAX's own API calls; None for a print."""
    kind = type(held)
    if issubclass(kind, str):
        return None
    function: Any = held.callback_func if _is_flat(held) else held
    if kind is FunctionType and held.__module__ == _debugging.__name__:
        names, cells = held.__code__.co_freevars, held.__closure__ or ()
        with contextlib.suppress(ValueError):  # an empty cell
            parts = {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
            function = parts.get("callback", held)
    inner: Any = without_partials(function)
    prints = code_of("debugging", "_format_print_callback")
    return None if type(inner) is FunctionType and inner.__code__ is prints else function


def without_partials(function: Any) -> Any:
    """Return what a `functools.partial` calls in the end."""
    while issubclass(type(function), functools.partial):  # it may lie about its class, or raise
        function = function.func
    return function


def frames_of(traceback: Any) -> list[tuple[Any, int]]:
    """Return code and instruction of each frame of a JAX traceback, innermost first."""
    return [] if traceback is None else list(zip(*traceback.raw_frames(), strict=True))


def lost_axes(operands: Sequence[Any], results: Sequence[Any]) -> tuple[str, ...]:
    """Return the axes that the operands of the call being lowered vary over and its results do not.

    None if every use of the results is a cast, and none for a ``shard_map`` without jit, which
    compiles its operations one by one, so their uses are unknown.
    """
    lost = varying_axes(operands) - varying_axes(results)
    return tuple(sorted(lost)) if lost and results and not _is_cast() else ()


def _is_cast() -> bool:
    """Return whether every use of the results of the call being lowered is a cast."""
    lowering = code_of("interpreters.mlir", "jaxpr_subcomp")
    eager = code_of("shard_map", "ShardMapTrace.process_primitive")
    found = [frame for frame in frames() if frame.f_code in (lowering, eager)]
    if not found or any(frame.f_code is eager for frame in found):
        return bool(found)
    known = found[0].f_locals
    jaxpr, results = known["jaxpr"], set(map(id, known["eqn"].outvars))
    uses = [eqn for eqn in jaxpr.eqns if not results.isdisjoint(map(id, eqn.invars))]
    returned = not results.isdisjoint(map(id, jaxpr.outvars))
    return not returned and all(eqn.primitive.name == "pvary" for eqn in uses)  # of `lax.pcast`
