"""Count the host calls that a vmap method without a loop would make."""

from __future__ import annotations

from collections.abc import Iterable

from ...recording import Site
from ._counts import Counts

_FLAVORS = ("pure", "io", "debug")  # that have other vmap methods
_FEW = 8  # calls in a loop: fewer are not worth a change of the function


def batch_calls(counts: Counts, site: Site, numbers: Iterable[int]) -> int:
    """Return how many calls would replace those for single batch elements.

    Args:
        counts: knows the calls.
        site: the call site.
        numbers: its indices into `Recording.lowered`.

    Returns:
        The number of crossings with a loop; 0 if they make few calls. Calls that do not run one
        after the other in Python do not count.
    """
    recording = counts.recording
    if site.flavor not in _FLAVORS:
        return 0
    looped = crossings = 0
    for number in numbers:
        fact = recording.lowered[number]
        if fact.waits_for_elements and not counts.elsewhere[number]:
            looped += int(counts.calls[number])
            crossings += int(counts.calls[number]) // (fact.elements or 1)
    return crossings if looped >= max(_FEW, 2 * crossings) else 0
