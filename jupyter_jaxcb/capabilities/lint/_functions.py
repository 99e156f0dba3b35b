"""Find the Python function that a call runs, and values of its names, without running anything."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections.abc import Callable
from types import FunctionType
from typing import Any, NamedTuple

from ...stack.trace import is_user_code

_NOT_READ = {"jax", "jaxlib", "numpy", "scipy", "jupyter_jaxcb", *sys.stdlib_module_names}
UNKNOWN: Any = object()


class Called(NamedTuple):
    """A Python function, with the arguments that are known before it is called."""

    function: Any  # a Python function
    known: dict[str, Any]  # its defaults, and what a partial or an object passes
    receiver: str = ""  # the parameter for the object of a method


def called_by(value: Any, receiver: Any = UNKNOWN) -> Called | None:
    """Return what calling `value` runs.

    None if that is written in C, or belongs to JAX, NumPy, SciPy or the standard library.
    """
    positional: tuple[Any, ...] = ()
    keywords: dict[str, Any] = {}
    while True:
        kind = type(value)
        if kind is FunctionType:
            if str(value.__globals__.get("__name__", "")).partition(".")[0] not in _NOT_READ:
                break
            value = vars(value).get("__wrapped__")  # np.errstate() as a decorator
        elif issubclass(kind, functools.partial):
            positional, keywords = (*value.args, *positional), {**value.keywords, **keywords}
            value = value.func
        elif kind is types.MethodType:
            value, receiver = value.__func__, value.__self__
        elif issubclass(kind, type | types.ModuleType | types.BuiltinFunctionType):
            return None
        elif type(wrapped := inspect.getattr_static(value, "__wrapped__", None)) is FunctionType:
            value = wrapped  # by functools.cache and its like
        elif type(call := inspect.getattr_static(kind, "__call__", None)) is FunctionType:
            value, receiver = call, value
        else:
            return None
    names = value.__code__.co_varnames[: value.__code__.co_argcount]
    defaults = value.__defaults__ or ()
    bound = () if receiver is UNKNOWN else (receiver,)
    known = {
        **dict(zip(names[len(names) - len(defaults) :], defaults, strict=True)),
        **(value.__kwdefaults__ or {}),
        **dict(zip(names, (*bound, *positional), strict=False)),
        **keywords,
    }
    return Called(value, known, names[0] if bound and names else "")


def layers(function: Callable[..., Any]) -> list[Called]:
    """Return what calling `function` runs, then what its decorators wrap, outermost first.

    Decorators of libraries are left out.
    """
    found: dict[Any, Called] = {}
    layer, innermost = called_by(function), None
    while layer is not None and layer.function not in found:
        innermost = layer.function
        found[innermost] = layer
        wrapped = vars(innermost).get("__wrapped__")
        receiver = layer.known.get(layer.receiver, UNKNOWN)
        layer = None if wrapped is None else called_by(wrapped, receiver)
    return [
        each
        for each in found.values()
        if each.function is innermost or is_user_code(each.function.__code__.co_filename)
    ]


def closure_of(function: FunctionType) -> dict[str, Any]:
    """Return the variables of outer functions that have a value."""
    values = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not assigned yet
            values[name] = cell.cell_contents
    return values


def attribute(value: Any, name: str) -> Any:
    """Return an attribute if that needs no running of code, else `UNKNOWN`."""
    if issubclass(type(value), types.ModuleType):
        return vars(value).get(name, UNKNOWN)
    found = inspect.getattr_static(value, name, UNKNOWN)
    is_class = issubclass(type(value), type)
    fields = inspect.getattr_static(value, "__dict__", None)
    if not is_class and type(fields) is types.GetSetDescriptorType:
        if fields.__get__(value).get(name, UNKNOWN) is found:  # of the object, not of its class
            return found
    if is_class and type(found) is types.ClassMethodDescriptorType:
        return found.__get__(None, value)  # datetime.now, in C
    of_class = inspect.getattr_static(type(value), name, None) is found
    if type(found) is FunctionType and of_class and not is_class:
        return types.MethodType(found, value)
    if type(found) in (staticmethod, classmethod):
        return found.__func__  # type: ignore[union-attr]
    return UNKNOWN if of_class and hasattr(type(found), "__get__") else found


def entries(value: Any) -> dict[Any, Any]:
    """Return the entries of a dict, list or tuple by key; none of anything else."""
    if type(value) in (list, tuple):
        return dict(enumerate(value))
    return value.copy() if type(value) is dict else {}


def entry(value: Any, key: Any) -> Any:
    """Return an entry of a dict, list or tuple, else `UNKNOWN`."""
    return entries(value).get(key, UNKNOWN)
