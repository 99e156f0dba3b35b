"""Random programs compute what their text means, and their recordings report what happened.

Also the status and the expected calls of each call site, and what ``explain`` predicts.
"""

import dataclasses

import jax
import pytest

from ._draw import Draw
from ._judged import judged, refused
from ._run import run_ours

pytestmark = pytest.mark.slow

SEEDS = range(30)
BLOCK = 10


def wrong(program, **judges):
    """Return what is wrong with the runs of a program, and whether it was refused."""
    ran, findings = judged(program, **judges)
    return findings, refused(ran)


@pytest.fixture(autouse=True)
def _programs_are_dropped():
    yield
    jax.clear_caches()


@pytest.mark.parametrize("first", SEEDS[::BLOCK])
def test_results_calls_order_recordings_and_reports_are_right(first):
    seeds = range(first, first + BLOCK)
    found = {seed: wrong(Draw(seed).program(), explain=seed % 2 == 0)[0] for seed in seeds}
    assert not any(found.values()), {seed: findings for seed, findings in found.items() if findings}


def test_planted_error_is_found_and_the_next_run_is_right():
    failed = 0
    for program in map(_runs_once, range(1000, 1006)):
        for name in _called(program):
            planted = dataclasses.replace(program, fail=(name, 1))
            assert not wrong(planted, explain=False)[0]
            assert not wrong(program, explain=False)[0]
            failed += 1
    assert failed > 6


def test_few_programs_are_refused():
    programs = [Draw(seed).program() for seed in range(BLOCK)]
    assert sum(wrong(p, explain=False, compare=False)[1] for p in programs) < BLOCK / 3


def _runs_once(seed):
    program = Draw(seed).program()
    return dataclasses.replace(program, inputs=program.inputs[:1], blocks="one", fail=None)


def _called(program):
    """Return the first host functions that a program calls, except prints, which cannot raise."""
    counts = run_ours(program, explain=False).runs[0].counts
    return [host.name for host in program.hosts if host.flavor != "print" and counts[host.name]][:2]
