"""Read the user's function, the program and the frames from binds of JAX's own callbacks.

Checked against JAX 0.8.0, 0.10.2, 0.11.2 and 0.12.0. The held value may be any callable, so only
its type and what Python itself stores is read: even ``isinstance`` could run user code.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Annotated, Any

_DEBUGGING = "jax._src.debugging"
_PRINTS = "_format_print_callback"  # the function a lowered print calls
_HOLDS = "jax._src.callback", "_FlatCallback"  # the class that pure and io callbacks hold
_Held = Annotated[Any, "jax._src.callback._FlatCallback"]


def program_keeps(primitive: Any, slot: str) -> Callable[[dict[str, Any], Any], Any]:
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


def frames_of(traceback: Any) -> list[tuple[Any, int]]:
    """Return code and instruction of each frame of a JAX traceback, innermost first."""
    try:
        codes, instructions = traceback.raw_frames()
    except AttributeError:  # None, or another type
        return []
    return list(zip(codes, instructions, strict=True))


def copy_of(held: Any) -> Any:
    """Return an equal callback of JAX's own API that is another object; None for other types.

    Calling it costs as much as calling `held`.
    """
    module, name = _HOLDS
    if type(held) is getattr(importlib.import_module(module), name, None):
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
    module, name = _HOLDS
    if type(held) is not getattr(importlib.import_module(module), name, None):
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
    module, name = _HOLDS
    if kind is getattr(importlib.import_module(module), name, None):
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
