"""Programs with public libraries, and the NaN that is planted in each.

Each module is a program as users write it, with ten functions that run it. A comment marks the
line that makes the first NaN: "# here" inside the function, or "# here: name" outside of it.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

PROGRAMS = {
    "optax": "train_optax",
    "equinox": "train_equinox",
    "flax": "train_flax",
    "diffrax": "solve_diffrax",
    "lineax": "solve_lineax",
    "optimistix": "solve_optimistix",
    "jaxopt": "minimize_jaxopt",
    "blackjax": "sample_blackjax",
    "numpyro": "sample_numpyro",
    "jax": "examples_of_jax",
}


class Plant(NamedTuple):
    """A program with one NaN.

    Attributes:
        run: runs it, and returns all its results.
        steps: in which step of each loop; the last may be `...`, for the loops of a library.
        element: in which batch element.
        direction: "forward", or "backward" if only the gradient is NaN.
    """

    run: Callable[[], Any]
    steps: tuple[Any, ...]
    element: tuple[int, ...]
    direction: str

    @property
    def lines(self) -> set[int]:
        """The numbers of the marked lines."""
        own, first = inspect.getsourcelines(self.run)
        everything, _ = inspect.getsourcelines(inspect.getmodule(self.run))
        name = self.run.__name__
        return {n for n, line in enumerate(own, first) if line.rstrip().endswith("# here")} | {
            n for n, line in enumerate(everything, 1) if line.rstrip().endswith(f"# here: {name}")
        }

    def has_steps(self, steps: tuple[int, ...]) -> bool:
        """Return whether `steps` are those of the NaN."""
        if self.steps[-1:] == (...,):
            known = self.steps[:-1]
            return steps[: len(known)] == known
        return steps == self.steps


_plants: dict[str, list[Plant]] = {}


def plant(
    *steps: Any, element: tuple[int, ...] = (), direction: str = "forward"
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Register a function that runs a program with a NaN in it."""

    def register(run: Callable[[], Any]) -> Callable[[], Any]:
        _plants.setdefault(run.__module__, []).append(Plant(run, steps, element, direction))
        return run

    return register


def plants_of(library: str) -> list[Plant]:
    """Return the plants in the program that uses `library`."""
    module = f"{__name__}.{PROGRAMS[library]}"
    importlib.import_module(module)
    return _plants[module]
