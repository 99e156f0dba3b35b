"""Name the arrays of a call as the host function's parameters do.

The names are for reports only: where a signature or a pytree cannot be read there are none, and
reports number the arrays.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from jax.tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_unflatten

from ._advice import did_you_mean
from ._callback import HostCallback, HostFunction, plain_signature


def without_leading(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a stand-in for `function` whose signature lacks the first `count` parameters.

    The annotation of the last removed parameter becomes the return annotation: it describes what
    the function writes.
    """
    if not count:
        return function
    try:
        signature = plain_signature(function)
    except ValueError:  # a builtin without a signature
        return function
    names = list(signature.parameters)
    if count > len(names) or any(
        signature.parameters[name].kind not in _POSITIONAL for name in names[:count]
    ):
        return function

    def stand_in() -> None:
        """Has the signature; is never called."""

    functools.update_wrapper(stand_in, function)
    rest = [parameter for name, parameter in signature.parameters.items() if name in names[count:]]
    stand_in.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
    hints = dict(getattr(function, "__annotations__", {}))
    written = hints.pop(names[count - 1], None)
    hints.pop("return", None)
    stand_in.__annotations__ = hints if written is None else {**hints, "return": written}
    return stand_in


_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


_MAX_CHARACTERS = 80
_SELF = object()  # in place of a user's object
# Callables whose signature is known without their attributes; np.sum is one of NumPy's functions.
_PLAIN = frozenset({types.FunctionType, types.BuiltinFunctionType, type(np.sum)})
# Keys of pytrees whose repr is short and the same in every run.
_PLAIN_KEYS = frozenset({str, int, float, bool, type(None)})
_PARAMETERS = re.compile(r"^ *Parameters\n *-+\n(.*)", re.MULTILINE | re.DOTALL)
_PARAMETER = re.compile(r"^ *([A-Za-z_][\w, ]*?) ?: ", re.MULTILINE)


class AddedName(str):
    """The name of an operand that a capability adds to those of the user's call.

    Reports show it; the message of a failed call leaves the operand out.
    """


class ArrayNames(NamedTuple):
    """What the names of operands and results are made from.

    Two binds at one call site have the same names if all fields but `function` are equal.
    """

    function: Any
    in_tree: PyTreeDef  # of (args, kwargs)
    out_tree: PyTreeDef | None = None  # of the declared result
    static: tuple[int, ...] = ()  # leaves of `in_tree` that are not operands
    leading: int = 0  # parameters of the function before the arguments of a call

    @classmethod
    def of(cls, callback: HostCallback) -> ArrayNames:
        """Return those of a callback of this package."""
        return cls(
            callback.host.current,
            callback.in_tree,
            callback.out_tree,
            tuple(callback.static.values),
            callback.leading,
        )

    def operands(self) -> tuple[str, ...]:
        """Return ``x``, ``params['w']``, ``args[0]`` for each operand; empty if unknown.

        A function of ours that takes the leaves of another one's arguments has their names in
        ``_operand_names``.
        """
        given = self.function._operand_names if names_operands(self.function) else None
        if isinstance(given, tuple):
            return given if len(given) == self.in_tree.num_leaves else ()

        def bound(leaves: Any) -> dict[str, Any]:
            args, kwargs = leaves
            return signature_of(self.function, self.leading).bind(*args, **kwargs).arguments

        names = _leaf_names(self.in_tree, bound)
        return tuple(name for place, name in enumerate(names) if place not in self.static)

    def results(self) -> tuple[str, ...]:
        """Return ``result``, ``result['mean']``, ``result[0]`` for each result; or nothing."""
        return _leaf_names(self.out_tree, lambda leaves: {"result": leaves})


def names_operands(function: Any) -> bool:
    """Return whether `function` is one of ours that has the names of its operands."""
    return hasattr(type(function), "_operand_names")  # this look runs no user code


def _leaf_names(
    tree: PyTreeDef | None, by_parameter: Callable[[Any], dict[str, Any]]
) -> tuple[str, ...]:
    if tree is None:
        return ()
    try:
        parameters = by_parameter(tree_unflatten(tree, range(tree.num_leaves)))
        # A tuple, because flattening a dict would sort the parameters.
        found, _ = tree_flatten_with_path(tuple(parameters.values()))
    except Exception:  # of a user's class, or a signature that does not fit: no names, but no harm
        return ()
    names = {place: _name(list(parameters), path) for path, place in found}
    known = tuple(names.get(place, "") for place in range(tree.num_leaves))
    return known if all(known) else ()


def _name(parameters: list[str], path: tuple[Any, ...]) -> str:
    """Return ``params['w']``; empty if a key has no dependable repr."""
    first, *rest = path
    if any(type(getattr(key, "key", "")) not in _PLAIN_KEYS for key in rest):
        return ""
    name = parameters[first.idx] + keystr(tuple(rest))
    return name if len(name) <= _MAX_CHARACTERS else f"{name[: _MAX_CHARACTERS - 1]}…"


def signature_of(function: Any, leading: int = 0) -> inspect.Signature:
    """Return the parameters of a host function that calls have, by their documented names.

    Args:
        function: the host function.
        leading: the number of parameters before the arguments of a call.

    Raises:
        TypeError, ValueError: if they are not known.
    """
    if type(function) is np.ufunc:
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [inspect.Parameter(name, positional) for name in _documented(function)]
        )
    return inspect.signature(without_leading(_plain(function), leading), follow_wrapped=False)


def check_named(host: HostFunction, option: str, names: Iterable[str]) -> None:
    """Raise ValueError if a host function lacks a parameter that an option names.

    Args:
        host: the host function.
        option: the option as the user typed it.
        names: the names in it.

    Raises:
        TypeError: if its parameters are not known.
    """
    __tracebackhide__ = True
    try:
        known = signature_of(host.current).parameters
    except (TypeError, ValueError):
        raise TypeError(
            f"cannot use {option} of {host.name}: its parameters are unknown. Wrap it, as in "
            f"def f({', '.join(names)}): return {host.name}({', '.join(names)})."
        ) from None
    for name in names:
        if name not in known:
            raise ValueError(
                f"{option} of {host.name}: it has no parameter {name!r}"
                f"{did_you_mean(name, known)} Its parameters are {', '.join(known) or 'none'}."
            )


def _plain(function: Any) -> Any:
    """Return a callable with the same signature, which can be read without running user code.

    `inspect.signature` looks for attributes, and those of a user's object may raise anything.

    Raises:
        TypeError: if there is none.
    """
    kind = type(function)
    if kind is functools.partial:
        return functools.partial(_plain(function.func), *function.args, **function.keywords)
    if kind is types.MethodType:
        return types.MethodType(_plain(function.__func__), _SELF)
    if kind is types.FunctionType and "__signature__" not in function.__dict__:
        wrapped = function.__dict__.get("__wrapped__")
        return function if wrapped is None else _plain(wrapped)
    if kind in _PLAIN:
        return function
    call = inspect.getattr_static(kind, "__call__", None)
    if type(call) is not types.FunctionType:
        raise TypeError(f"a {kind.__name__} has no signature that can be read")
    return types.MethodType(_plain(call), _SELF)


def _documented(function: np.ufunc) -> list[str]:
    """Return the documented parameters of a ufunc: ``v`` and ``z`` of `scipy.special.jv`.

    Its signature, which only a recent NumPy provides, has ``x1`` and ``x2``.
    """
    section = _PARAMETERS.search(function.__doc__ or "")
    lines = _PARAMETER.findall(section[1]) if section else []
    names = [name for line in lines for name in line.replace(" ", "").split(",")]
    return [name for name in names if name != "out"][: function.nin]
