"""Unordered callbacks that ran in another order than the program has them."""

from __future__ import annotations

import itertools

import numpy as np

from ..recording import LoweredSite, Program, Recording


def out_of_order(recording: Recording) -> list[str]:
    """A sentence for each pair of neighbours of a program whose calls came the other way round.

    Only io and debug callbacks without vmap that every run calls as often as each other are
    compared, call by call. The order of unordered calls may change from run to run.
    """
    programs: dict[Program, list[tuple[int, LoweredSite]]] = {}
    for number, fact in enumerate(recording.lowered):
        looks_on = fact.site.flavor in ("io", "debug") and fact.shard is None and not fact.levels
        if fact.program is not None and looks_on:
            programs.setdefault(fact.program, []).append((number, fact))
    found = []
    for facts in programs.values():
        facts.sort(key=lambda pair: pair[1].index)
        for (one, first), (other, second) in itertools.pairwise(facts):
            swapped, runs = _swapped(recording, one, other)
            if swapped:
                found.append(
                    f"{recording.where(second.site)} ran before {recording.where(first.site)} in "
                    f"{swapped:,} of {runs:,} runs; ordered=True keeps program order"
                )
    return found


def _swapped(recording: Recording, one: int, other: int) -> tuple[int, int]:
    """In how many runs the other site was called first, and how many there were."""
    starts = [
        np.sort(recording.calls["start_ns"][recording.calls["lowered"] == number])
        for number in (one, other)
    ]
    if len(starts[0]) != len(starts[1]):
        return 0, 0
    return int((starts[1] < starts[0]).sum()), len(starts[0])
