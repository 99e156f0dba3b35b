"""The judges of random programs find every mistake planted here."""

import logging

import jax
import pytest

from ._draw import Draw
from ._judged import judged
from ._mistakes import MISTAKES
from ._program import walk
from ._shrink import shrink

pytestmark = pytest.mark.slow

# For each mistake, the seed of the first program that shows it and the kind of finding.
SHOWN = {
    "a call is not recorded": (2, "count"),
    "a call is recorded twice": (2, "count"),
    "a batch element is not recorded": (1, "length"),
    "calls are recorded at another site": (0, "log order"),
    "an outcome is lost": (2, "silence"),
    "a file loses the last call": (0, "json"),
    "every site with several call paths is reported deduplicated": (13, "fewer"),
    "one compiled call too many is reported": (0, "expected"),
    "a run too many is counted": (0, "expected"),
    "explain predicts that all are kept": (4, "statuses"),
    "host error always returns none": (3, "host_error"),
    "a batch element is skipped": (1, "raised"),
    "batch elements are visited in reverse": (1, "meaning"),
    "results of batch elements are reversed": (1, "meaning"),
}


def kinds(program, explain=False):
    return {kind for kind, _ in judged(program, explain=explain, compare=False)[1]}


@pytest.fixture(autouse=True)
def _programs_are_dropped(caplog):
    caplog.set_level(logging.CRITICAL)
    yield
    jax.clear_caches()


def test_every_mistake_has_a_program_that_shows_it():
    assert SHOWN.keys() == MISTAKES.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_planted_mistake_is_found(name, monkeypatch):
    seed, kind = SHOWN[name]
    ahead = kind == "statuses"  # these findings need `explain`
    assert kind not in kinds(Draw(seed).program(), ahead)
    with monkeypatch.context() as patch:
        MISTAKES[name](patch)
        # Some mistakes happen at every n-th call, so earlier programs count, too.
        assert any(kind in kinds(Draw(n).program(), ahead) for n in range(seed + 1))


def test_shrunk_program_still_shows_the_mistake(monkeypatch):
    program = Draw(1).program()
    MISTAKES["a batch element is not recorded"](monkeypatch)
    smallest = shrink(program, lambda candidate: "length" in kinds(candidate), tries=60)
    assert "length" in kinds(smallest)
    assert len(_statements(smallest)) < len(_statements(program))


def _statements(program):
    return [statement for function in walk(program.functions()) for statement in function.body]
