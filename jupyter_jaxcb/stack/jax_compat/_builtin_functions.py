"""What binds of JAX's own callbacks hold: the user's function, the program, the frames.

Seen in JAX 0.8.0, 0.10.2, 0.11.2 and 0.12.0. What is held may be anything that can be called, and
is asked for nothing but what Python itself knows of it: not even ``isinstance`` is safe.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any

_DEBUGGING = "jax._src.debugging"
_PRINTS = "_format_print_callback"  # what a print calls, lowered
_HOLDS = "jax._src.callback", "_FlatCallback"  # what pure and io callbacks hold


def program_keeps(primitive: Any, slot: str) -> Callable[[dict[str, Any], Any], Any]:
    """What the program of an eager call keeps, given its parameters and what is to be called.

    JAX compiles one for all equal calls: that keeps what the first of them held. It is what host
    calls come with, and the one way to tell them from those of other programs.

    Raises:
        KeyError: the program does not keep the parameters where they were seen.
    """
    dispatch: Any = importlib.import_module("jax._src.dispatch")
    programs = dispatch.xla_primitive_callable
    codes = inspect.unwrap(programs).__code__.co_consts
    if not any(isinstance(code, CodeType) and "params" in code.co_freevars for code in codes):
        raise KeyError("no params in xla_primitive_callable")

    def keeps(params: dict[str, Any], own: Any) -> Any:
        # Whatever fails here, JAX does next, and says so: it may not be hashable.
        with contextlib.suppress(Exception):
            function = programs(primitive, **{**params, slot: own}).__wrapped__
            names = function.__code__.co_freevars
            return function.__closure__[names.index("params")].cell_contents[slot]
        return own

    return keeps


def frames_of(traceback: Any) -> list[tuple[Any, int]]:
    """Code and instruction of each frame of a traceback as JAX keeps it, innermost first."""
    try:
        codes, instructions = traceback.raw_frames()
    except AttributeError:  # None, or another kind
        return []
    return list(zip(codes, instructions, strict=True))


def user_function(held: Any) -> Any:
    """The user's function that a bind of JAX's own calls; None for a print.

    Where JAX keeps it elsewhere, what JAX calls.
    """
    kind = type(held)
    if issubclass(kind, str):
        return None
    function: Any = held
    module, name = _HOLDS
    if kind is getattr(importlib.import_module(module), name, None):
        function = getattr(held, "callback_func", held)
    elif kind is FunctionType and held.__module__ == _DEBUGGING:
        names, cells = held.__code__.co_freevars, held.__closure__ or ()
        with contextlib.suppress(ValueError):  # a cell that is empty
            parts = {name: cell.cell_contents for name, cell in zip(names, cells, strict=True)}
            function = parts.get("callback", held)
    while issubclass(type(function), functools.partial):
        function = function.func
    prints = type(function) is FunctionType and function.__name__ == _PRINTS
    return None if prints and function.__module__ == _DEBUGGING else function
