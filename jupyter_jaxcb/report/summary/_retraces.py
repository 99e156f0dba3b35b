"""Say why the program of one function was compiled several times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...recording import Compilation

LISTED = 3  # argument lists that are shown
_ALL_SHOWN = 3  # arguments; of more, only those that differ are shown


class Retraces(NamedTuple):
    """The compilations of one function: more than one."""

    name: str  # of the program
    compilations: tuple[Compilation, ...]

    @property
    def has_other_sizes(self) -> bool:
        """Whether one function was compiled for arguments that differ in the size of their axes."""
        avals = {one.arguments for one in self.compilations}
        kinds = {tuple((len(aval.shape), aval.dtype) for aval in own) for own in avals}
        return (
            not self._is_new_each_time and len(avals) == len(self.compilations) and len(kinds) == 1
        )

    @property
    def _is_new_each_time(self) -> bool:
        functions = {one.function for one in self.compilations}
        return 0 not in functions and len(functions) == len(self.compilations)

    @property
    def times(self) -> str:
        """``jit_f was compiled 3 times``."""
        return f"{self.name} was compiled {len(self.compilations)} times"

    @property
    def reason(self) -> str:
        """The rest of that sentence; empty if the reason is not known."""
        if self._is_new_each_time:
            return (
                ", each time for a new function object: define and jit the function once, outside "
                "the loop"
            )
        if len({one.arguments for one in self.compilations}) == len(self.compilations):
            return f", for {_listed([one.arguments for one in self.compilations])}"
        same = {(one.function, one.arguments) for one in self.compilations}
        if len(same) == 1 and self.compilations[0].function:
            return (
                ", for arguments of the same shapes: static arguments, devices or JAX's settings "
                "differ, or JAX's caches were cleared"
            )
        return ""


def retraces(compilations: Iterable[Compilation]) -> list[Retraces]:
    """Return the functions of the user that were compiled several times."""
    own: dict[tuple[str, int], list[Compilation]] = {}
    for one in compilations:
        if one.code:
            own.setdefault((one.program.name, one.code), []).append(one)
    return [Retraces(name, tuple(found)) for (name, _), found in own.items() if len(found) > 1]


def _listed(arguments: Sequence[tuple]) -> str:
    """Return ``(float32[3]), (float32[4])``."""
    shown, only = list(arguments), ""
    if len({len(one) for one in arguments}) == 1 and len(arguments[0]) > _ALL_SHOWN:
        columns = [column for column in zip(*arguments, strict=True) if len(set(column)) > 1]
        shown = list(zip(*columns, strict=True))
        if len(columns) < len(arguments[0]):
            only = "; the other arguments are the same"
    words = [f"({', '.join(map(str, one))})" for one in shown[:LISTED]]
    more = [f"{len(shown) - LISTED} more"] * (len(shown) > LISTED)
    return ", ".join([*words, *more]) + only
