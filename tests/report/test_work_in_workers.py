"""The wall time of crossings whose calls an executor's workers make side by side."""

import dataclasses

import numpy as np
import pytest

from jupyter_jaxcb.recording import (
    VMAP_METHODS,
    Aval,
    LoweredSite,
    Program,
    Recording,
    Site,
    VmapLevel,
    Worker,
)
from jupyter_jaxcb.recording._columns import ROW
from jupyter_jaxcb.report import finished, summarize

LEVELS = (VmapLevel(2, VMAP_METHODS["sequential"], (True,)),)
AVALS = (Aval((2,), "float32"),)
SITE = Site("pure", "simulate", "<cell>", 3, 0, cell=True)
FACT = LoweredSite(SITE, Program("jit_f", "cpu"), 0, AVALS, AVALS, LEVELS)
COLUMNS = ("crossing", "thread", "queued_ns", "start_ns", "end_ns")
THREADS = ("MainThread", "worker 1", "worker 2")


def recorded(*rows, fact=FACT):
    """Return a recording of calls: crossing, thread, queued, start, end; thread 0 is XLA's."""
    calls = np.zeros(len(rows), ROW)
    for column, values in zip(COLUMNS, zip(*rows, strict=True), strict=True):
        calls[column] = values
    workers = tuple(Worker(one, THREADS[one], 1, "host", 0) for one in (1, 2))
    return Recording(lowered=(fact,), calls=calls, threads=THREADS, workers=workers)


SIDE_BY_SIDE = [(1, 1, 10, 110, 200), (1, 2, 20, 120, 230)]


@pytest.mark.parametrize(
    ("more", "wall_ns"),
    [
        ([], 130),  # from 100, when the chunks were sent
        ([(2, 1, 0, 1_000, 1_010)], 140),  # the time between two crossings is not theirs
        ([(2, 1, 0, 150, 220)], 130),  # two devices cross at once
        ([(2, 0, 0, 1_000, 1_010)], 0),  # one call ran on XLA's thread
    ],
)
def test_wall_time_is_that_of_the_crossings_and_is_unknown_if_a_call_ran_elsewhere(more, wall_ns):
    (summary,) = summarize(recorded(*SIDE_BY_SIDE, *more))
    assert summary.wall_ns == finished(summary).measured()["wall_ns"] == wall_ns


def test_a_program_does_not_wait_for_queued_calls_whatever_their_wall_time():
    (summary,) = summarize(recorded(*SIDE_BY_SIDE, fact=dataclasses.replace(FACT, queued=True)))
    assert summary.wall_ns == 0
