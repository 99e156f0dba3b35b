"""Decorators that work with and without arguments: ``@pure`` and ``@pure(result="x")``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

_Options = ParamSpec("_Options")
_Made = TypeVar("_Made", covariant=True)


class TwoForms(Protocol[_Options, _Made]):
    """The type of both forms: given a function, returns the callback; else returns a decorator."""

    @overload
    def __call__(
        self, function: Callable[..., Any], /, *args: _Options.args, **options: _Options.kwargs
    ) -> _Made: ...
    @overload
    def __call__(
        self, /, *args: _Options.args, **options: _Options.kwargs
    ) -> Callable[[Callable[..., Any]], _Made]: ...


def in_two_forms(
    decorator: Callable[Concatenate[Any, _Options], _Made],
) -> TwoForms[_Options, _Made]:
    """Return `decorator`, typed as both of its forms; its first parameter is optional."""
    return decorator  # type: ignore[return-value]


def with_function(function: Any, register: Callable[..., Any], *given: Any) -> Any:
    """Return ``register(function, *given)``, or a decorator that calls it if `function` is None."""
    __tracebackhide__ = True

    def decorator(function: Any) -> Any:
        __tracebackhide__ = True
        return with_function(function, register, *given)

    return decorator if function is None else register(function, *given)
