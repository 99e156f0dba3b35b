"""Start crossings without a check for signals, so that their `try` sees every Ctrl-C.

CPython looks for pending signals where a function starts. A Ctrl-C that arrives while XLA computes
would raise KeyboardInterrupt there, before the first `try` of the crossing, and XLA would make a
JaxRuntimeError of it. The instruction is RESUME: with an argument of 2 or more, which the compiler
writes after `yield from` and `await`, it does everything but this check. On a Python where that was
not tried, they start with the check.
"""

from __future__ import annotations

import dis
from collections.abc import Callable
from types import CodeType
from typing import TypeVar

from ..trace import IS_TRIED

_AT_START, _WITHOUT_CHECK = 0, 2

F = TypeVar("F", bound=Callable)


def starts_unchecked(name: str) -> Callable[[F], F]:
    """Return a decorator for a function whose inner function `name` is to start unchecked.

    Loops and calls in it check for signals as usual.
    """

    def patch(function: F) -> F:
        if not IS_TRIED:
            return function
        consts = function.__code__.co_consts
        function.__code__ = function.__code__.replace(
            co_consts=tuple(
                _unchecked(one) if isinstance(one, CodeType) and one.co_name == name else one
                for one in consts
            )
        )
        return function

    return patch


def _unchecked(code: CodeType) -> CodeType:
    instructions, resume = bytearray(code.co_code), dis.opmap["RESUME"]
    for at in range(0, len(instructions), 2):
        if instructions[at] == resume and instructions[at + 1] == _AT_START:
            instructions[at + 1] = _WITHOUT_CHECK
            return code.replace(co_code=bytes(instructions))
    return code
