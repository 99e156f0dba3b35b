"""Find the callbacks that a function calls, with the values that it calls them with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.tree_util import tree_flatten, tree_unflatten

from ... import jax_compat
from ...register import Callback, watching_calls
from ...stack.call import name_of
from ._subject import SECONDS, OutOfTime, clock, one_line

_TRACED = "JAX traces all of its calls, as in jax.checkpoint, so its arguments have no values"
_MASKED = "its mask is not true for the first batch element"


class CallsOf:
    """The callbacks that one call of a function makes.

    The function runs once, with ``jax.disable_jit``, so that arguments have values.

    Attributes:
        found: the arguments of the first call with known values, by callback, in that order.
        unknown: why the other callbacks have no such call, by callback.
        rest: why the function did not run to its end; empty if it did.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.found: dict[Callback, tuple[tuple[Any, ...], dict[str, Any]]] = {}
        self.unknown: dict[Callback, str] = {}
        self.rest = ""
        self.name = name_of(function)
        self._end = clock() + SECONDS
        # Fresh, because a jax.checkpoint that is in JAX's caches does not call its function.
        with self._to_the_end(), jax_compat.fresh_caches(), jax.disable_jit():
            with watching_calls(self._called):
                jax.block_until_ready(function(*args, **kwargs))

    @contextlib.contextmanager
    def _to_the_end(self) -> Iterator[None]:
        """Keep why the function did not run to its end, if it called a callback before."""
        try:
            yield
        except OutOfTime as error:
            self.rest = str(error)
        except Exception as error:
            if not (self.found or self.unknown):
                raise
            self.rest = f"it raised {one_line(error)}"

    def _called(
        self, callback: Callback, args: tuple[Any, ...], kwargs: dict[str, Any], mask: Any
    ) -> None:
        if clock() > self._end:
            raise OutOfTime(f"no time left after {SECONDS:.0f} s")
        if callback in self.found or callback.flavor == "tap":
            return
        leaves, tree = tree_flatten((args, kwargs))
        *values, needed = map(jax_compat.first_value, (*leaves, mask))
        if needed is None or any(value is None for value in values):
            self.unknown.setdefault(callback, _TRACED)
        elif not needed:
            self.unknown.setdefault(callback, _MASKED)
        else:
            self.unknown.pop(callback, None)
            self.found[callback] = tree_unflatten(tree, values)
