"""Find the callbacks that a function calls, with the values that it calls them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax.tree_util import tree_flatten, tree_unflatten

from ... import jax_compat
from ...register import Callback, watching_calls
from ._subject import SECONDS, OutOfTime, clock, one_line


class CallsOf(NamedTuple):
    """The callbacks that one call of a function makes.

    Attributes:
        known: the arguments of the first call with known values, by callback, in that order.
        unknown: why the other callbacks have no such call, by callback.
        rest: why the function did not run to its end; empty if it did.
    """

    known: dict[Callback, tuple[tuple[Any, ...], dict[str, Any]]]
    unknown: dict[Callback, str]
    rest: str


def calls_of(function: Callable[..., Any], args: Any, kwargs: Any) -> CallsOf:
    """Run a function once, with ``jax.disable_jit``, so that arguments have values."""
    known: dict[Callback, Any] = {}
    unknown: dict[Callback, str] = {}
    end, rest = clock() + SECONDS, ""

    def called(callback: Callback, args: Any, kwargs: Any, mask: Any) -> None:
        if clock() > end:
            raise OutOfTime(f"no time left after {SECONDS:.0f} s")
        if callback in known or callback.flavor == "tap":
            return
        leaves, tree = tree_flatten((args, kwargs))
        *values, needed = map(jax_compat.first_value, (*leaves, mask))
        if needed is None or any(value is None for value in values):
            why = "JAX traces all of its calls, as in jax.checkpoint, so its arguments have no "
            unknown.setdefault(callback, f"{why}values")
        elif not needed:
            unknown.setdefault(callback, "its mask is not true for the first batch element")
        else:
            unknown.pop(callback, None)
            known[callback] = tree_unflatten(tree, values)

    try:
        # Fresh, because a jax.checkpoint that is in JAX's caches does not call its function.
        with jax_compat.fresh_caches(), jax.disable_jit(), watching_calls(called):
            jax.block_until_ready(function(*args, **kwargs))
    except OutOfTime as error:
        rest = str(error)
    except Exception as error:
        if not (known or unknown):
            raise
        rest = f"it raised {one_line(error)}"
    return CallsOf(known, unknown, rest)
