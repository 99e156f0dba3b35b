"""Say why the program of one function was compiled several times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...recording import Compilation

LISTED = 3  # argument lists that are shown
_ALL_SHOWN = 3  # arguments; of more, only those that differ are shown
# In which of two compilations an argument is weakly typed.
_WHEN = {
    (True, False): "the first time but not the second",
    (False, True): "the second time but not the first",
}
_NOT_ALWAYS = "not each time"


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
    def hint(self) -> str:
        """``compiled 3 times``."""
        return f"compiled {len(self.compilations)} times"

    @property
    def reason(self) -> str:
        """The rest of that sentence; empty if the reason is not known."""
        if self._is_new_each_time:
            return (
                ", each time for a new function object: define and jit the function once, outside "
                "the loop"
            )
        every = self.compilations
        shapes = [one.arguments for one in every]
        if len(set(shapes)) == len(every):
            return f", for {_listed(shapes)}"
        if not all(len(one.weak) == len(one.arguments) for one in every):
            return ""  # the file is of a version that did not record it
        types = {(one.arguments, one.weak) for one in every}
        if len(types) == len(every):
            alike = len(set(shapes)) == 1
            return self._weakly_typed if alike else f", for {_listed([*map(_typed, every)])}"
        functions = {one.function for one in every}
        if len(types) == len(functions) == 1 and 0 not in functions:
            return (
                ", for arguments of the same shapes: static arguments, devices or JAX's settings "
                "differ, or JAX's caches were cleared"
            )
        return ""

    @property
    def _weakly_typed(self) -> str:
        """Name the arguments that are weakly typed in some of the compilations only."""
        first = self.compilations[0]
        columns = list(zip(*(one.weak for one in self.compilations), strict=True))
        differ = [place for place, column in enumerate(columns) if len(set(column)) > 1]
        names = [first.names[n] if first.names else f"argument {n + 1}" for n in differ]
        when = {_WHEN.get(columns[place], _NOT_ALWAYS) for place in differ}
        aval, name = first.arguments[differ[0]], names[0] if first.names else "x"
        way = f"jnp.asarray({name}, jnp.{aval.dtype})"
        if len(differ) > 1:
            way = f"each with its dtype, as in {way}"
        elif not aval.shape:
            way += f" or np.{aval.dtype}({name})"
        names[LISTED:] = [f"{len(names) - LISTED} more"] * (len(names) > LISTED)
        who = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
        return (
            f", because {who} {'was' if len(differ) == 1 else 'were'} weakly typed (as Python "
            f"numbers are) {when.pop() if len(when) == 1 else _NOT_ALWAYS}: pass {way}"
        )


def retraces(compilations: Iterable[Compilation]) -> list[Retraces]:
    """Return the functions of the user that were compiled several times."""
    own: dict[tuple[str, int], list[Compilation]] = {}
    for one in compilations:
        if one.code:
            own.setdefault((one.program.name, one.code), []).append(one)
    return [Retraces(name, tuple(found)) for (name, _), found in own.items() if len(found) > 1]


def _typed(one: Compilation) -> tuple[str, ...]:
    """Return ``("float32[3]", "weak float32[]")``."""
    pairs = zip(one.arguments, one.weak, strict=True)
    return tuple(f"weak {aval}" if weak else str(aval) for aval, weak in pairs)


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
