"""Check that the comparison with JAX finds a mistake planted in ours."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest

from ._compare import OURS, disagreement
from ._interpret import Table
from ._programs import Callback, Program, sites
from ._strategy import drawn

TRIES = 40  # one of this many programs has to show the mistake


def first_disagreement(
    kinds: tuple[str, ...],
    table: Table = OURS,
    may_show: Callable[[list[Callback]], bool] = bool,
) -> tuple[Program, str]:
    """Return the first drawn program with a disagreement, and the disagreement.

    Args:
        kinds: the kinds of nests in the programs.
        table: the callbacks to compare with JAX's.
        may_show: whether a program with these callbacks may show the mistake; others are skipped.
    """
    programs = (drawn(random.Random(seed), kinds) for seed in itertools.count())
    candidates = (p for p in programs if may_show([callback for callback, _ in sites(p.block)]))
    for program in itertools.islice(candidates, TRIES):
        difference = disagreement(program, table)[1]
        if difference is not None:
            return program, difference
    pytest.fail(f"{TRIES} programs do not show the mistake")


def agrees(program: Program) -> bool:
    """Return whether our callbacks, without a planted mistake, do the same as JAX's."""
    return disagreement(program)[1] is None
