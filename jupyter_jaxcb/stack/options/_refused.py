"""Check the options of a callback: each value, what it needs, and the pairs that are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ._options import ROWS, Options

_Check = TypeVar("_Check", bound=Callable[[Any], Any])
_checks: dict[str, Callable[[Any], Any]] = {}
refused_results: dict[str, tuple[str, str]] = {}  # by option: why not, and what to do instead


class Refusal(NamedTuple):
    """Two options that cannot be combined.

    Attributes:
        one: an option.
        other: another one.
        reason: why not, as the end of a sentence.
        advice: what to do instead; empty: to drop one of them.
        applies: whether their values cannot be combined; None: unless one has its default.
    """

    one: str
    other: str
    reason: str
    advice: str
    applies: Callable[[Options], bool] | None


refusals: list[Refusal] = []


def check(option: str) -> Callable[[_Check], _Check]:
    """Register what checks the values of an option, as a decorator.

    It gets a value that is not the default, returns it as it is used, and raises ValueError,
    TypeError or ImportError if there is something wrong with it.
    """

    def register(function: _Check) -> _Check:
        _checks[option] = function
        return function

    return register


def refuse_result(option: str, reason: str, advice: str) -> None:
    """Register an option of callbacks that return nothing; the texts are as in `Refusal`."""
    refused_results[option] = reason, advice


def check_result(name: str, options: Options) -> None:
    """Raise ValueError if a callback that returns something has options of those that do not.

    Args:
        name: that of the host function.
        options: those of the callback.
    """
    __tracebackhide__ = True
    for option, (reason, advice) in refused_results.items():
        if options.given(option):
            raise ValueError(
                f"{options.spelled(option)} cannot be combined with the result of {name}: "
                f"{reason}. {advice}"
            )


def refuse(
    one: str,
    other: str,
    reason: str,
    advice: str = "",
    *,
    applies: Callable[[Options], bool] | None = None,
) -> None:
    """Register two options that cannot be combined, see `Refusal`."""
    refusals.append(Refusal(one, other, reason, advice, applies))


def checked(flavor: str, *, drop_in: bool = False, **given: Any) -> Options:
    """Return the options of a callback, or of a call of a function like JAX's.

    Raises:
        ValueError: for an invalid value, an option without one that it needs, or a refused pair.
        TypeError: for a value that is not of the right kind.
        ImportError: for a value that needs a package that is not installed.
    """
    __tracebackhide__ = True
    options = Options(flavor=flavor, drop_in=drop_in, **given)
    names = [
        name
        for name, value in given.items()
        if value is not ROWS[name].default and options.given(name)
    ]
    if not names:
        return options
    for name in names:
        row = ROWS[name]
        if row.kind == "flag" and not isinstance(given[name], bool | np.bool_):
            spelled = options.spelled(name)
            raise ValueError(f"{spelled} is neither True nor False. Pass one of them.")
        if row.needs and not options.given(row.needs):
            need = f"{row.needs}=" + "True" * (ROWS[row.needs].kind == "flag")
            raise ValueError(
                f"{options.spelled(name)} needs {need}: {row.why}. Pass {need} too, or drop "
                f"{name}=."
            )
        if name in _checks:
            given[name] = _checks[name](given[name])
    for one, other, reason, advice, applies in refusals:
        if one in names and other in names and (applies is None or applies(options)):
            one, other = options.spelled(one), options.spelled(other)
            raise ValueError(
                f"{one} cannot be combined with {other}: {reason}. "
                f"{advice or f'Drop {one} or {other}.'}"
            )
    return Options(flavor=flavor, drop_in=drop_in, **given)
