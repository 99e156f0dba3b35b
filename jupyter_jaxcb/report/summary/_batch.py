"""Count the host calls that a vmap method without a loop would make."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ...recording import Site
from ._counts import Counts

_FLAVORS = ("pure", "io", "debug")  # that have other vmap methods
_FEW = 8  # calls in a loop: fewer are not worth a change of the function


class Loop(NamedTuple):
    """The calls of a site for single batch elements, one after the other in Python."""

    calls: int = 0
    batch_calls: int = 0  # that would replace them
    host_ns: int = 0  # of them, in the host function


NO_LOOP = Loop()


def slow_loop(counts: Counts, site: Site, numbers: Iterable[int]) -> Loop:
    """Return the calls for single batch elements that fewer calls would replace.

    Args:
        counts: knows the calls.
        site: the call site.
        numbers: its indices into `Recording.lowered`.

    Returns:
        The calls of crossings with a loop; none if there are few. Calls that do not run one after
        the other in Python do not count.
    """
    recording = counts.recording
    if site.flavor not in _FLAVORS:
        return NO_LOOP
    looped: list[int] = []
    calls = crossings = 0
    for number in numbers:
        fact = recording.lowered[number]
        if fact.waits_for_elements and not counts.elsewhere[number]:
            looped.append(number)
            calls += int(counts.calls[number])
            crossings += int(counts.calls[number]) // (fact.elements or 1)
    if calls < max(_FEW, 2 * crossings):
        return NO_LOOP
    return Loop(calls, crossings, counts.host_ns(looped))
