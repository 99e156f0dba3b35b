"""Read the running host call from the local variables of a crossing's frame.

The quoted names in this module are local variables of the crossings; rename them in both places.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType
from typing import Any, NamedTuple, TypeVar

from ..trace import CROSSINGS
from . import _crossing
from ._observed_call import RecordedCall


class CallElsewhere(NamedTuple):
    """A running host call that is not on the stack of its crossing."""

    crossing: Mapping[str, Any]  # local variables of the crossing's frame
    element: int  # -1: no batch element
    number: int  # among the calls of its host function
    thread: str  # name of the thread, or the pid of another process
    start_ns: int | None  # of the recorder's clock; None: not recorded
    inside: list[FrameType]  # innermost first; empty for another process
    returned: int  # calls before it, of its loop or chunk, that are not recorded yet
    returned_ns: int  # their time, as far as it is known


# Given the innermost frames and the names of all threads.
_Find = Callable[[Mapping[int, FrameType], Mapping[int | None, str]], Iterator[CallElsewhere]]
FINDERS: list[_Find] = []
_Function = TypeVar("_Function", bound=Callable)


def finds_calls(find: _Find) -> _Find:
    """Register what finds running host calls that are not on the stack of their crossing."""
    FINDERS.append(find)
    return find


# The call a crossing is making now: batch element, start and number; None between calls.
HostCallNow = tuple[int, int | None, int] | None


def _single(names: dict[str, Any], stamps: list[int] | None) -> HostCallNow:
    """Read a crossing that makes one host call."""
    if "number" not in names or "recorder" not in names or "end" in names:
        return None
    if names["recorder"] is None:
        return -1, None, names["number"]
    return (-1, names["start"], names["number"]) if "start" in names else None


def _looped(names: dict[str, Any], stamps: list[int] | None) -> HostCallNow:
    """Read a crossing that loops over batch elements."""
    if "calls" not in names or "stacked" in names:
        return None
    order = names["order"]
    if names["recorder"] is None:
        done, start = names["collected"].done, None
    elif stamps:
        done, start = len(stamps) - 1, stamps[-1]
    else:
        return None
    return (int(order[done]), start, names["before"] + done + 1) if done < order.size else None


def selects_in(inner: str) -> Callable[[_Function], _Function]:
    """Return a decorator for a function whose inner function has a `Selection` called `chosen`."""

    def register(function: _Function) -> _Function:
        SELECTING.add(_code_of(function, inner))
        return function

    return register


def _code_of(function: Callable, inner: str) -> CodeType:
    """Return the code of the function `inner` that `function` defines."""
    return next(
        code
        for code in function.__code__.co_consts
        if isinstance(code, CodeType) and code.co_name == inner
    )


# Codes of the functions around a crossing that select its batch elements, see `selects_in`.
SELECTING: set[CodeType] = set()
# The local variable `stamps` of this function has the clock after each finished batch element.
RECORDED_ELEMENTS = _crossing._stack_recorded.__code__
RECORDED_CALL = RecordedCall.call_observed.__code__
SINGLE = _code_of(_crossing.single_call, "cross")
LOOPED = _code_of(_crossing.looped_calls, "cross")
# Maps the code of a frame to a reader of its variables and the `stamps` of its batch elements.
READERS: Mapping[CodeType, Callable[[dict[str, Any], list[int] | None], HostCallNow]] = {
    RECORDED_CALL: _single,
    SINGLE: _single,
    LOOPED: _looped,
}
CROSSINGS.update((SINGLE, LOOPED))
