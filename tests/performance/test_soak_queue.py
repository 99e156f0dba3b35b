"""A few rounds of the queue's soak test: no queued call is lost."""

from jupyter_jaxcb import Recording

from .soak_queue import QueueSoak


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
