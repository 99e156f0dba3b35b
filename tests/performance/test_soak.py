"""A few rounds of the soak test do every kind of step, and no host call is lost."""

import sys

import numpy as np
import pytest

import jupyter_jaxcb as jaxcb
from jupyter_jaxcb import Recording

from . import soak as program
from . import soak_compiled
from .soak import KINDS, MAY_GROW_MB, Soak
from .soak_objects import BOUND, FAILURES, ObjectsSoak
from .soak_queue import QueueSoak


def test_recordings_have_every_host_call_of_a_mixed_load():
    soak = Soak(threads=2)
    for load in soak.loads:  # once each, because the rounds choose at random
        for kind in load.kinds.values():
            kind()
    for number in range(len(KINDS)):
        soak.round(number)
    assert soak.lost == []
    assert soak.calls > 100 and soak.interrupted == len(KINDS)


def test_comparison_detects_a_lost_call():
    soak = Soak(threads=1)
    count = soak.count
    soak.loads[0].count("w0_step")
    before = count.now()
    soak.loads[0].count("w0_step")
    soak.compare(0, "recorded", Recording(), count.now() - before)
    assert soak.lost == ["round 0, recorded: ran Counter({'w0_step': 1}), only recorded Counter()"]


@pytest.mark.parametrize(
    ("grown_mb", "lost", "status", "last"),
    [
        (0, [], 0, "passed"),
        (MAY_GROW_MB - 5, [], 0, "passed"),
        (MAY_GROW_MB + 5, [], 1, "failed: memory grew by more than 60 MB after the warm-up"),
        (0, ["round 3"], 1, "failed: calls were lost, or recorded but not made"),
    ],
)
def test_exit_status_is_1_if_calls_were_lost_or_memory_grew(grown_mb, lost, status, last, capsys):
    soak = Soak(threads=1)
    soak.lost = lost
    soak.memory = [(n, 300 + 2 * grown_mb * n / 100, 1000) for n in range(101)]
    found = soak.verdict()
    assert (type(found), found) == (int, status)
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_interrupted_soak_test_prints_its_results(capsys, monkeypatch):
    def interrupted(soak, number):
        raise KeyboardInterrupt

    monkeypatch.setattr(Soak, "round", interrupted)
    monkeypatch.setattr(sys, "argv", ["soak.py", "--threads", "1"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 0
    first, *_, before_last, last = capsys.readouterr().out.splitlines()
    assert first.startswith("3600 s of work in 1 threads: recordings must have as many calls")
    assert "too short to tell whether memory grows: 0 of at least 8" in before_last
    assert last == "passed"


def test_a_round_of_compiled_functions_counts_all_calls_and_leaves_nothing(monkeypatch):
    monkeypatch.setattr(soak_compiled, "FUNCTIONS", 2)
    soak, kept = soak_compiled.CompiledSoak(), []
    soak.round()
    assert soak.wrong == []
    assert soak.totals == {"rounds": 1, "functions": 2, "calls": 2 * 108}
    made = jaxcb.io
    monkeypatch.setattr(jaxcb, "io", lambda f, **options: kept.append(f) or made(f, **options))
    soak.round()
    assert soak.wrong == ["round 2: 2 functions are alive"]


def test_each_queued_call_is_made_once_or_counted_as_dropped():
    soak = QueueSoak()
    for _ in range(12):
        soak.round()
    assert soak.wrong == []
    assert soak.totals["failed"] > 0


def test_lost_call_is_found():
    soak = QueueSoak()
    soak.crossed = 1
    soak._check(Recording(), [])
    (wrong,) = soak.wrong
    assert wrong.startswith("round 1: 0 rows and ") and wrong.endswith(" of 1 calls")


@pytest.mark.filterwarnings("ignore::jupyter_jaxcb.ImpureFunctionWarning")
def test_host_objects_of_every_transformation_and_failure_stay_within_the_bound():
    soak = ObjectsSoak()
    for _ in range(30):
        soak.round()
    assert soak.wrong == []
    assert sum(soak.totals[f"failed in {where}"] for where in FAILURES) == 30
    kept = [soak.factor(np.float32([[n + 1]])) for n in range(BOUND + 1)]
    soak.round()
    assert soak.wrong == [
        f"round 31: {BOUND} objects are kept and {len(soak.made)} alive, of at most {BOUND}"
    ]
    assert len(kept) == BOUND + 1
