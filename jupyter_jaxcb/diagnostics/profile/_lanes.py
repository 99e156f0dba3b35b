"""Put the events of the profiler and the host calls into lanes: one for each thread or device."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable

import numpy as np

from ...recording import Recording
from ._division import Intervals
from ._events import Events

_XLA_THREADS = "tf_"  # begins the names of the threads that XLA starts
_PYTHON_THREADS = "python"  # how the profiler names a thread of Python


@dataclasses.dataclass
class ThreadLane:
    """What one thread or device did; owners are parts.

    Attributes:
        name: of the thread or device.
        events: the events of the profiler.
        is_own: whether it is the thread of the block.
        calls: the host calls it made.
    """

    name: str
    events: Intervals
    is_own: bool = False
    calls: list[Intervals] = dataclasses.field(default_factory=list)


def lanes_of(events: Iterable[tuple[Events, np.ndarray]], own_name: str) -> list[ThreadLane]:
    """Return a lane for each thread and device of which the profiler has events.

    Args:
        events: what was read, with the part of each of its keys.
        own_name: the name of the block's thread.
    """
    found: dict[tuple[str, int], list[ThreadLane]] = {}
    for part, numbers in events:
        seen: Counter[str] = Counter()
        for lane in part.lanes:
            place = ("", 0) if lane.is_own else (lane.name, seen[lane.name])
            seen[lane.name] += not lane.is_own
            intervals = Intervals(lane.starts, lane.ends, numbers[lane.keys])
            found.setdefault(place, []).append(ThreadLane(lane.name, intervals, lane.is_own))
    lanes = [_joined(parts) for parts in found.values()]
    _rename(lanes, own_name)
    return [lane for lane in lanes if len(lane.events.starts) or lane.is_own]


def lane_name(thread: str) -> str:
    """Return how a lane names the thread that Python names `thread`."""
    return "main thread" if thread == "MainThread" else thread


def add_calls(
    lanes: list[ThreadLane], calls: Intervals, threads: np.ndarray, recording: Recording,
    crossing_of: np.ndarray,
) -> None:  # fmt: skip
    """Add each host call to the lane of its crossing, or else to that of its thread.

    Args:
        lanes: the lanes; more are added for threads of which the profiler has no events.
        calls: the host calls, by their start.
        threads: the thread of each call, an index into `Recording.threads`.
        recording: the recording.
        crossing_of: for each part of a host function, the part of its crossings.
    """
    workers = [worker.thread for worker in recording.workers]
    by_worker = np.isin(threads, workers)  # whose program waits in the crossing
    left = np.ones(len(calls.starts), bool)
    for lane in lanes:
        within = _inside(calls, lane.events, crossing_of) & left & ~by_worker
        left &= ~within
        if within.any():
            lane.calls.append(Intervals(*(column[within] for column in calls)))
    by_name = {lane.name: lane for lane in lanes}
    for number in np.unique(threads[left]):
        name = lane_name(recording.threads[number])
        lane = by_name.get(name)
        if lane is None:
            lane = by_name[name] = ThreadLane(name, Intervals(*np.empty((3, 0), np.int64)))
            lanes.append(lane)
        own = left & (threads == number)
        lane.calls.append(Intervals(*(column[own] for column in calls)))


def _inside(calls: Intervals, events: Intervals, crossing_of: np.ndarray) -> np.ndarray:
    """Return whether each call begins in a crossing of its callback in these events."""
    wanted = crossing_of[calls.owners]
    inside = np.zeros(len(calls.starts), bool)
    for part in np.unique(wanted[wanted >= 0]):
        own = np.flatnonzero(events.owners == part)
        own = own[np.argsort(events.starts[own])]
        rows = np.flatnonzero(wanted == part)
        if not len(own):
            continue
        at = np.searchsorted(events.starts[own], calls.starts[rows], side="right") - 1
        ends = np.where(at >= 0, events.ends[own][at], -1)
        inside[rows] = calls.starts[rows] < ends
    return inside


def _joined(parts: list[ThreadLane]) -> ThreadLane:
    columns = zip(*(part.events for part in parts), strict=True)
    events = Intervals(*(np.concatenate(column) for column in columns))
    return ThreadLane(parts[0].name, events, any(part.is_own for part in parts))


def _rename(lanes: list[ThreadLane], own_name: str) -> None:
    """Give the lanes names that a person reads; threads of one kind are numbered."""
    seen: Counter[str] = Counter()
    for lane in lanes:
        if lane.is_own:
            lane.name = own_name
        elif lane.name.startswith((_XLA_THREADS, _PYTHON_THREADS)):
            kind = "XLA" if lane.name.startswith(_XLA_THREADS) else "Python"
            if len(lane.events.starts):
                seen[kind] += 1
                lane.name = f"{kind} thread {seen[kind]}"
