"""Summarize the calls of the queue, and how long they and the program waited."""

from __future__ import annotations

import numpy as np

from ...recording import QUEUE_THREAD, Recording
from ..summary import counted, time_words


def by_queue(recording: Recording) -> list[str]:
    """Return one line, or none if no calls were queued."""
    calls = recording.calls
    threads = [n for n, name in enumerate(recording.threads) if name.endswith(QUEUE_THREAD)]
    own = calls[np.isin(calls["thread"], threads)]
    waits = sum(use.waits for use in recording.queue)
    if not len(own) and not waits:
        return []
    queued = own["queued_ns"][own["queued_ns"] > 0]  # of the first call of each crossing
    ran = int((own["end_ns"] - own["start_ns"]).sum())
    words = f"{counted(len(own), 'queued call')}: ran {time_words(ran)}"
    if len(queued):
        words += (
            f" after {time_words(int(np.median(queued)))} in the queue (median; at most "
            f"{time_words(int(queued.max()))})"
        )
    if waits:
        waited = time_words(sum(use.waited_ns for use in recording.queue))
        words += f"; the queue was full {counted(waits, 'time')}: the program waited {waited}"
    return [words]
