"""The host calls that run in the background: those that the queue makes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...recording import LoweredSite, PartKind, Recording

BACKGROUND = PartKind.QUEUED


def kind_of(fact: LoweredSite) -> PartKind:
    """Return the kind of the host calls of a site."""
    return BACKGROUND if fact.queued else PartKind.HOST


def in_background(recording: Recording) -> np.ndarray:
    """Return whether each host call was made in the background, in log order."""
    facts = np.array([fact.queued for fact in recording.lowered], bool)
    return facts[recording.calls["lowered"]]


def waits(recording: Recording) -> Iterator[tuple[int, int]]:
    """Yield how long crossings waited for room in the queue, after an index of their site."""
    return ((use.lowered, use.waited_ns) for use in recording.queue if use.waited_ns)
