"""What a watched value is: the static parameter of this package's operations in the program."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import os
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp

from ._place import Place

_numbers = itertools.count(1)


def next_number() -> int:
    """Return the number of the next note, which grows in the order in which JAX traces."""
    return next(_numbers)


class Condition(NamedTuple):
    """Which values are bad.

    Attributes:
        text: "nan", "inf", "both", or an expression of ``x``, such as "abs(x) > 1e6".
        test: takes an array and returns an array of booleans.
        is_finite: whether no finite value is bad.
    """

    text: str
    test: Callable[[Any], Any]
    is_finite: bool


_BAD = {
    "nan": jnp.isnan,
    "inf": jnp.isinf,
    "both": lambda x: jnp.logical_not(jnp.isfinite(x)),
}


@functools.lru_cache(maxsize=256)  # equal conditions share JAX's caches
def condition(text: str) -> Condition:
    """Return the condition that `text` means.

    Raises:
        ValueError: it is neither one of the three words nor an expression of ``x``.
    """
    if text in _BAD:
        return Condition(text, _BAD[text], True)
    names = {**vars(jnp), "jnp": jnp}
    try:
        code = compile(text, "<condition>", "eval")
        test = functools.partial(eval, code)  # the user's own expression, of the user's own cell
        found = jnp.asarray(test({**names, "x": jnp.ones(2)}))
        if found.shape != (2,) or found.dtype != bool:
            raise TypeError(
                f"it returned {found.dtype}{list(found.shape)} for an array of 2 values"
            )
    except Exception as error:
        raise ValueError(
            f"the condition {text!r} is not an expression of x that returns one boolean for each "
            f"value: {error}. Pass 'nan', 'inf', 'both', or an expression such as 'abs(x) > 1e6'."
        ) from error
    return Condition(text, lambda x: test({**names, "x": x}), False)


class Options(NamedTuple):
    """What a block watches; equal options share JAX's caches.

    Attributes:
        rows: whether the numbers of every value are sent.
        bad: which values are bad.
        names: the variables that are watched; empty for all.
        every: the numbers of every `every`-th step of the innermost loop are sent.
        reductions: names and functions of the user, whose number is sent with the others.
        stop: whether the program ends at the first bad value.
    """

    rows: bool
    bad: Condition
    names: tuple[str, ...] = ()
    every: int = 1
    reductions: tuple[tuple[str, Callable[[Any], Any]], ...] = ()
    stop: bool = False


@dataclasses.dataclass(frozen=True, eq=False)
class Note:
    """A value of the program: the result of an expression, or a cotangent.

    Attributes:
        place: the expression.
        options: what is sent.
        rows: whether the numbers of the value are sent even if it is not bad.
        loops: how many steps each loop around it has, outermost first; None if that is unknown.
        within: the numbers of the contexts around it.
        knows_steps: False if it may be in loops whose steps are unknown.
        conditional: whether the last operand says for which batch elements the value counts.
        names: what the inputs of the expression are called.
        cotangent_of: for the backward pass, the expression whose cotangent it is.
        is_backward: whether it is noted in the backward pass.
        looks_for_bad: whether a bad value is reported.
        encloses: whether the operation runs code of the user that is watched too.
        used_by: the numbers of the notes of the expressions that use the value.
        held_by: the variables that hold the value; known when their line has run.
        number: grows in the order in which JAX traces.
    """

    place: Place
    options: Options
    rows: bool
    loops: tuple[int | None, ...] = ()
    within: tuple[int, ...] = ()
    knows_steps: bool = True
    conditional: bool = False
    names: tuple[str, ...] = ()
    cotangent_of: str = ""
    is_backward: bool = False
    looks_for_bad: bool = True
    encloses: bool = False
    used_by: list[int] = dataclasses.field(default_factory=list)
    held_by: list[str] = dataclasses.field(default_factory=list)
    number: int = dataclasses.field(default_factory=next_number)

    @property
    def variable(self) -> str:
        """The variable whose value or cotangent it is."""
        return self.cotangent_of if self.is_backward else self.place.expression

    @property
    def direction(self) -> str:
        """``"backward"`` for a cotangent, else ``"forward"``."""
        return "backward" if self.is_backward else "forward"

    def backward(self) -> Note:
        """Return the note of the cotangent, at the moment when the backward pass is traced."""
        of = self.held_by[0] if self.held_by else self.cotangent_of
        return dataclasses.replace(self, is_backward=True, cotangent_of=of, number=next_number())

    def __repr__(self) -> str:  # in a jaxpr
        return f"{os.path.basename(self.place.file)}:{self.place.line}"
