"""Windows on what a recorder hears."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ._facts import LoweredSite, Outcome, Program, Site


class Mark(NamedTuple):
    """How much a recorder had heard at some moment; what came later is one window."""

    calls: int
    bound: Mapping[Site, int]
    lowered: int
    outcomes: int
    runs: Mapping[Program, int]
    overflow: int
    compilations: int
    previews: int
    not_finite: Mapping[LoweredSite, tuple[int, int]]


class Heard(NamedTuple):
    """What a recorder has heard while it goes on listening."""

    calls: np.ndarray  # rows (`ROW`), as they ended
    lowered: Sequence[LoweredSite]  # that the rows count
    threads: Sequence[str]
    outcomes: Sequence[Outcome]
    runs: Mapping[Program, int]
    overflow: int


BEGINNING = Mark(0, {}, 0, 0, {}, 0, 0, 0, {})
