"""What an argument in front of the user's does to the derivative rules of a function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

_Rule = Callable[..., Any]


class Gate(NamedTuple):
    """Makes rules of functions with such an argument from rules without it."""

    jvp: Callable[[_Rule], _Rule]
    vjp: Callable[[_Rule, _Rule, Sequence[int]], tuple[_Rule, _Rule]]  # and the nondiff_argnums
    tangents: Callable[[_Rule], _Rule]  # of a rule that takes this argument, and only its tangents
