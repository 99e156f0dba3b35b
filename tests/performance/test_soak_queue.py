"""A few rounds of the queue's soak test: no queued call is lost, and each way out occurs."""

from jupyter_jaxcb import Recording

from .soak_queue import QueueSoak


def test_each_queued_call_is_made_once_or_counted_as_dropped():
    soak = QueueSoak()
    while soak.totals["rounds"] < 12 or not all(soak.totals[n] for n in ("failed", "dropped")):
        soak.round()
    assert soak.wrong == []


def test_lost_call_is_found():
    soak = QueueSoak()
    soak._check(Recording(), [])
    assert soak.wrong == ["round 1: 0 made + 0 dropped of 720"]
