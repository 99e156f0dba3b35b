"""Put the events of the profiler and the host calls into lanes: one for each thread or device."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable

import numpy as np

from ...recording import Recording
from ._division import Intervals
from ._events import Events, LaneEvents

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
        waits: the host calls of workers for which one of its crossings waited.
    """

    name: str
    events: Intervals
    is_own: bool = False
    calls: list[Intervals] = dataclasses.field(default_factory=list)
    waits: list[Intervals] = dataclasses.field(default_factory=list)


def lanes_of(events: Iterable[tuple[Events, np.ndarray]], own_name: str) -> list[ThreadLane]:
    """Return a lane for each thread and device of which the profiler has events.

    Args:
        events: what was read, with the part of each of its keys.
        own_name: the name of the block's thread.
    """
    found: dict[tuple[str, int], list[ThreadLane]] = {}
    for part, numbers in events:
        seen: Counter[str] = Counter()
        own = _own_lane(part)
        for lane in part.lanes:
            is_own = lane is own
            place = ("", 0) if is_own else (lane.name, seen[lane.name])
            seen[lane.name] += not is_own
            intervals = Intervals(lane.starts, lane.ends, numbers[lane.keys])
            found.setdefault(place, []).append(ThreadLane(lane.name, intervals, is_own))
    lanes = [_joined(parts) for parts in found.values()]
    _rename(lanes, own_name)
    return [lane for lane in lanes if len(lane.events.starts) or lane.is_own]


def _own_lane(events: Events) -> LaneEvents | None:
    """Return the lane of the block's thread.

    If the profiler was stopped and started again, there are events without a mark of that thread,
    which is then taken to be the one that starts the most programs.
    """
    for lane in events.lanes:
        if lane.is_own:
            return lane
    is_dispatch = np.array([key.kind == "dispatch" for key in events.keys], bool)
    starts = [int(is_dispatch[lane.keys].sum()) for lane in events.lanes]
    return events.lanes[int(np.argmax(starts))] if any(starts) else None


def lane_name(thread: str) -> str:
    """Return how a lane names the thread that Python names `thread`."""
    return "main thread" if thread == "MainThread" else thread


def add_calls(
    lanes: list[ThreadLane], calls: Intervals, threads: np.ndarray, recording: Recording,
    crossing_of: np.ndarray,
) -> None:  # fmt: skip
    """Add the host calls of each thread to its lane.

    The profiler and the recording do not number threads alike. A call belongs to the lane with a
    crossing that contains it closely, and rather to one that contains most calls of its thread. A
    worker of an executor, for which a crossing waits, and a thread without crossings have a lane of
    their name.

    Args:
        lanes: the lanes; more are added for threads of which the profiler has no events.
        calls: the host calls.
        threads: the thread of each call, an index into `Recording.threads`.
        recording: the recording.
        crossing_of: for each part of a host function, the part of its crossings; -1: none.
    """
    workers = {worker.thread for worker in recording.workers}
    names = np.array([lane_name(name) for name in recording.threads])[threads]
    waited_for = np.isin(threads, list(workers))
    known = tuple(lanes)
    by_name = {lane.name: lane for lane in lanes}
    for name in np.unique(names).tolist():
        own = calls.chosen(names == name)
        by_worker = waited_for[names == name]
        chosen = np.full(len(own.starts), -1)
        if known:
            scores = np.stack([_closeness(own, lane.events, crossing_of) for lane in known])
            scores = scores * scores.sum(axis=1, keepdims=True)
            chosen = np.where(scores.max(axis=0) > 0, scores.argmax(axis=0), -1)
        for number in np.unique(chosen[by_worker & (chosen >= 0)]).tolist():
            known[number].waits.append(own.chosen(by_worker & (chosen == number)))
        chosen[by_worker] = -1
        for lane in np.unique(chosen).tolist():
            some = own.chosen(chosen == lane)
            if lane >= 0:
                known[lane].calls.append(some)
                continue
            if name not in by_name:
                by_name[name] = ThreadLane(name, Intervals(*np.empty((3, 0), np.int64)))
                lanes.append(by_name[name])
            by_name[name].calls.append(some)


def _closeness(calls: Intervals, events: Intervals, crossing_of: np.ndarray) -> np.ndarray:
    """Return how closely a crossing contains each call: 0: none does; towards 1, the closer."""
    wanted = crossing_of[calls.owners]
    found = np.zeros(len(calls.starts))
    for part in np.unique(wanted[wanted >= 0]):
        own = np.flatnonzero(events.owners == part)
        rows = np.flatnonzero(wanted == part)
        if not len(own):
            continue
        own = own[np.argsort(events.starts[own])]
        at = np.searchsorted(events.starts[own], calls.starts[rows], side="right") - 1
        starts, ends = events.starts[own][at], events.ends[own][at]
        inside = (at >= 0) & (calls.ends[rows] <= ends)
        late = np.maximum(calls.starts[rows] - starts, 0)
        found[rows] = inside / (1 + late / np.maximum(ends - starts, 1))
    return found


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
