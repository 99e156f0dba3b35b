"""Summarize what was done on other threads than XLA's: by workers, the queue and host objects."""

from __future__ import annotations

import numpy as np

from ...recording import ObjectUse, Recording
from ..summary import byte_words, call_words, counted, time_words
from ._queue import by_queue

LISTED = 8  # workers listed by name
_IN_VAIN = 10  # so often computed, and found never: its limits are too low, or its arguments differ


def by_other_threads(recording: Recording) -> list[str]:
    """Return lines on an executor's workers, the queue and host objects, if they were used."""
    return [*by_worker(recording), *by_queue(recording), *map(_of_object, recording.objects)]


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
        f"waited {time_words(waited)} for a worker, ran {time_words(ran)} ({share} % waiting)"
    ]


def _of_object(use: ObjectUse) -> str:
    words = f"host object {use.name}: "
    if use.computed:
        words += f"computed {counted(use.computed, 'time')} in {time_words(use.computed_ns)}, "
    words += f"found {counted(use.found, 'time')}"
    if use.found:
        words += f" (saved {time_words(use.saved_ns)})"
    words += f"; hashing took {time_words(use.hashed_ns)}; {byte_words(use.nbytes)} are kept"
    if use.removed:
        words += f"; {use.removed:,} removed by a limit"
    return words + _advice(use)


def _advice(use: ObjectUse) -> str:
    if use.found or use.computed < _IN_VAIN:
        return ""
    if use.removed:
        return "; no object was kept long enough to be found: raise max_bytes or max_objects"
    return "; no object was found again: its arguments differ in each call"
