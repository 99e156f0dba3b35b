"""Summarize the calls that were not made on XLA's threads, and how long they waited."""

from __future__ import annotations

import numpy as np

from ...recording import Recording
from ..summary import call_words, counted
from ._objects import by_host_object
from ._queue import by_queue
from ._words import time_words

LISTED = 8  # workers listed by name


def by_other_threads(recording: Recording) -> list[str]:
    """Return lines on an executor's workers, the queue and host objects, if they were used."""
    return [*by_worker(recording), *by_queue(recording), *by_host_object(recording)]


def by_worker(recording: Recording) -> list[str]:
    """Return one line, or none if no executor was used."""
    calls = recording.calls
    threads = [worker.thread for worker in recording.workers]
    own = calls[np.isin(calls["thread"], threads)]
    if not len(own):
        return []
    counts = np.bincount(own["thread"], minlength=len(recording.threads))
    named = [
        f"{recording.threads[thread]}: {counts[thread]:,}" for thread in threads if counts[thread]
    ]
    more = [f"{len(named) - LISTED} more"] * (len(named) > LISTED)
    waited = int(own["queued_ns"].sum())
    ran = int((own["end_ns"] - own["start_ns"]).sum())
    share = round(100 * waited / max(waited + ran, 1))
    workers = counted(len(named), "worker")
    return [
        f"{call_words(len(own))} by {workers}: {', '.join([*named[:LISTED], *more])}; "
        f"queued {time_words(waited)}, ran {time_words(ran)} ({share} % queued)"
    ]
