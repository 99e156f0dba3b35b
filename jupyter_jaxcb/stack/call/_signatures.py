"""Signatures of host functions that take output buffers before the arguments of a call."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any


def without_leading(function: Callable[..., Any], count: int) -> Callable[..., Any]:
    """Return a stand-in for `function` whose signature lacks the first `count` parameters.

    The annotation of the last removed parameter becomes the return annotation: it describes what
    the function writes.
    """
    if not count:
        return function
    try:
        signature = inspect.signature(function)
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
