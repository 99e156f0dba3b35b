"""Does the comparison with JAX notice a mistake in ours?"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from ._compare import OURS, disagreement
from ._interpret import Table
from ._programs import Callback, Program, sites
from ._strategy import drawn

TRIES = 40  # programs that a mistake has to show itself in


def found(
    kinds: tuple[str, ...],
    table: Table = OURS,
    concerns: Callable[[list[Callback]], bool] = bool,
) -> tuple[Program, str]:
    """(program, disagreement) of the first drawn program that shows one.

    Args:
        kinds: of nests in the programs.
        table: what to compare with JAX.
        concerns: whether these callbacks may show the mistake; other programs are passed over.
    """
    programs = (drawn(random.Random(seed), kinds) for seed in itertools.count())
    concerned = (p for p in programs if concerns([callback for callback, _ in sites(p.block)]))
    for program in itertools.islice(concerned, TRIES):
        difference = disagreement(program, table)[1]
        if difference is not None:
            return program, difference
    pytest.fail(f"{TRIES} programs do not show the mistake")


def agrees(program: Program) -> bool:
    """Whether ours, without a mistake, does as JAX."""
    return disagreement(program)[1] is None
