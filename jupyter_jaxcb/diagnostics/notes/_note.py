"""A note, which is a watched value of a program, and the operands of its operation."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from ...jax_compat import BRANCH, Around
from ._options import Options
from ._source import Place

_numbers = itertools.count(1)


def next_number() -> int:
    """Return the number of the next note, which grows in the order in which JAX traces."""
    return next(_numbers)


@dataclasses.dataclass(frozen=True, eq=False)
class Note:
    """A value of the program: the result of an expression, a variable, or a cotangent.

    Attributes:
        place: the expression.
        options: what is sent.
        rows: whether the numbers of the value are sent even if it is not bad.
        around: the loops and branches around it, see `jax_compat.Around`.
        names: what the inputs of the expression are called.
        cotangent_of: for the backward pass, the expression whose cotangent it is.
        is_backward: whether it is noted in the backward pass.
        looks_for_bad: whether a bad value is reported.
        encloses: whether the operation runs code of the user that is watched too.
        used_by: the numbers of the notes of the expressions that use the value.
        held_by: the variables that hold the value; known when their line has run.
        lost: not empty if it may be in loops whose steps are unknown.
        number: grows in the order in which JAX traces.
    """

    place: Place
    options: Options
    rows: bool
    around: Around = ()
    names: tuple[str, ...] = ()
    cotangent_of: str = ""
    is_backward: bool = False
    looks_for_bad: bool = True
    encloses: bool = False
    used_by: list[int] = dataclasses.field(default_factory=list)
    held_by: list[str] = dataclasses.field(default_factory=list)
    lost: list[bool] = dataclasses.field(default_factory=list)
    number: int = dataclasses.field(default_factory=next_number)

    @property
    def loops(self) -> tuple[Any, ...]:
        """How many steps each loop around it has, outermost first; None if that is unknown."""
        return tuple(length for length in self.around if length != BRANCH)

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


class Layout(NamedTuple):
    """What the operands of a note are: the value, its inputs, and those for what is around it.

    Attributes:
        inputs: how many inputs there are.
        around: see `Note`.
        axes: for each operand, the axes of the vmap levels, innermost first; None: unbatched.
        sizes: of the vmap levels, innermost first.
    """

    inputs: int
    around: Around
    axes: tuple[Any, ...]
    sizes: tuple[int, ...]

    @property
    def masks(self) -> list[int]:
        """The operands that say for which batch elements the value counts.

        An operand of a branch says so if it has a batch axis; otherwise the branch is taken.
        """
        around = enumerate(self.around, 1 + self.inputs)
        return [n for n, what in around if what == BRANCH and {*self.axes[n]} - {None}]

    @property
    def steps(self) -> list[int]:
        """The operands that are steps."""
        return [n for n, what in enumerate(self.around, 1 + self.inputs) if what != BRANCH]

    def of_value(self) -> tuple[Layout, list[int]]:
        """Return the layout of the value and the masks alone, and which operands they are."""
        operands = [0, *self.masks]
        axes = tuple(self.axes[n] for n in operands)
        return Layout(0, (BRANCH,) * len(self.masks), axes, self.sizes), operands

    def mask(self, arrays: Sequence[Any], xp: Any = jnp) -> Any:
        """Return whether the value counts, for each batch element; None if it does in all."""
        mask = None
        for n in self.masks:
            counts = self.by_element(_unreduced, arrays[n], n, xp)
            mask = counts if mask is None else mask & counts
        return mask

    def step(self, arrays: Sequence[Any]) -> Any:
        """Return the step of each loop, for each batch element."""
        steps = [self.by_element(_unreduced, arrays[n], n).astype(np.int32) for n in self.steps]
        count = math.prod(self.sizes)
        return jnp.stack(steps, axis=-1) if steps else jnp.zeros((count, 0), np.int32)

    def by_element(self, reduce: Any, x: Any, operand: int = 0, xp: Any = jnp) -> Any:
        """Reduce all axes but those of the batch; return a number for each batch element."""
        return self.in_order(reduce(x, axis=self.others(x, operand)), operand, xp)

    def others(self, x: Any, operand: int = 0) -> tuple[int, ...]:
        """Return the axes of an operand that are not those of the batch."""
        return tuple(a for a in range(x.ndim) if a not in self.axes[operand])

    def in_order(self, reduced: Any, operand: int = 0, xp: Any = jnp) -> Any:
        """Return the numbers of an operand, which has only batch axes, in the order of elements."""
        axes = self.axes[operand]
        order = sorted(a for a in axes if a is not None)
        outer_first = [*zip(axes, self.sizes, strict=True)][::-1]
        moved = reduced.transpose([order.index(a) for a, _ in outer_first if a is not None])
        shape = [1 if a is None else size for a, size in outer_first]
        sizes = [size for _, size in outer_first]
        return xp.broadcast_to(moved.reshape(shape), sizes).reshape(-1)


def _unreduced(x: Any, axis: Any) -> Any:
    return x
