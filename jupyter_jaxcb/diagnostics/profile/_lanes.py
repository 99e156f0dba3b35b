"""Put the events of the profiler and the host calls into lanes: one for each thread or device."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

import numpy as np

from ...recording import Recording
from ._division import NOTHING, Intervals, concatenated
from ._events import Events, LaneEvents

_XLA_THREADS = "tf_"  # begins the names of the threads that XLA starts
_LATEST = np.iinfo(np.int64).max
_PYTHON_THREADS = "python"  # how the profiler names a thread of Python
_NAMELESS = "Dummy-"  # begins the names that Python gives to threads which others have started


@dataclasses.dataclass
class ThreadLane:
    """What one thread or device did; owners are parts.

    Attributes:
        name: of the thread or device.
        events: the events of the profiler.
        is_own: whether it is the thread of the block.
        calls: the host calls it made.
        waits: the host calls of workers for which one of its crossings waited.
        is_unnamed: whether it is a thread of Python, whose name the profiler does not give.
    """

    name: str
    events: Intervals
    is_own: bool = False
    calls: list[Intervals] = dataclasses.field(default_factory=list)
    waits: list[Intervals] = dataclasses.field(default_factory=list)
    is_unnamed: bool = False


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
    lanes: list[ThreadLane], calls: Intervals, rows: np.ndarray, recording: Recording,
    crossing_of: np.ndarray,
) -> None:  # fmt: skip
    """Add each host call to the lane of its crossing.

    The profiler and the recording do not number threads alike. A worker of an executor, for which a
    crossing waits, and a thread without crossings have a lane of their name.

    Args:
        lanes: the lanes; more are added for threads of which the profiler has no events.
        calls: the host calls.
        rows: these calls in the recording.
        recording: the recording.
        crossing_of: for each part of a host function, the part of its crossings; -1: none.
    """
    known = tuple(lanes)
    of_crossing = _lanes_of_calls(calls, rows, known, crossing_of)
    by_worker = np.isin(rows["thread"], [worker.thread for worker in recording.workers])
    _name_threads(known, np.where(by_worker, -1, of_crossing), rows, recording)
    by_name = {lane.name: lane for lane in lanes}
    for number, lane in enumerate(known):
        own = of_crossing == number
        for which, column in ((own & ~by_worker, lane.calls), (own & by_worker, lane.waits)):
            if which.any():
                column.append(calls.chosen(which))
    left = (of_crossing < 0) | by_worker
    threads = np.flatnonzero(np.bincount(rows["thread"][left])).tolist()
    for name, thread in sorted((lane_name(recording.threads[one]), one) for one in threads):
        if name not in by_name:
            by_name[name] = ThreadLane(name, NOTHING)
            lanes.append(by_name[name])
        by_name[name].calls.append(calls.chosen(left & (rows["thread"] == thread)))


def _name_threads(
    lanes: Sequence[ThreadLane], lane_of: np.ndarray, rows: np.ndarray, recording: Recording
) -> None:
    """Give each thread of Python the name under which the recording has most of its calls."""
    names = {lane.name for lane in lanes}
    for number, lane in enumerate(lanes):
        threads = rows["thread"][lane_of == number]
        if lane.is_unnamed and len(threads):
            name = lane_name(recording.threads[np.bincount(threads).argmax()])
            if name not in names and not name.startswith(_NAMELESS):
                names.add(name)
                lane.name, lane.is_unnamed = name, False


def _lanes_of_calls(
    calls: Intervals, rows: np.ndarray, lanes: Sequence[ThreadLane], crossing_of: np.ndarray
) -> np.ndarray:
    """Return the number of the lane with the crossing of each call; -1: there is none."""
    wanted, found = crossing_of[calls.owners], np.full(len(rows), -1)
    for part in np.unique(wanted[wanted >= 0]):
        own = np.flatnonzero(wanted == part)
        both = rows["lowered"][own].astype(np.int64) << 32 | rows["crossing"][own].astype(np.int64)
        keys, crossing = np.unique(both, return_inverse=True)
        starts, ends = (np.full(len(keys), limit) for limit in (_LATEST, -_LATEST))
        np.minimum.at(starts, crossing, calls.starts[own])
        np.maximum.at(ends, crossing, calls.ends[own])
        found[own] = _containing(starts, ends, _events_of(part, lanes))[crossing]
    return found


def _events_of(part: int, lanes: Sequence[ThreadLane]) -> list[tuple[int, int, int]]:
    """Return start, end and lane of each event of a part, in the order of time."""
    own = [lane.events.chosen(lane.events.owners == part) for lane in lanes]
    numbers = np.repeat(np.arange(len(own)), [len(one.starts) for one in own])
    starts, ends = (np.concatenate([one[column] for one in own]) for column in (0, 1))
    order = np.lexsort((numbers, ends, starts))
    columns = (column[order].tolist() for column in (starts, ends, numbers))
    return list(zip(*columns, strict=True))


def _containing(
    starts: np.ndarray, ends: np.ndarray, events: Sequence[tuple[int, int, int]]
) -> np.ndarray:
    """Return the lane of the event that contains each crossing; each event contains one.

    Of several events, the one that ends first is taken: what is left of the others then contains
    each later crossing that any of them contained.
    """
    found, waiting, begun = np.full(len(starts), -1), [], 0
    latest = max((event[1] for event in events), default=-_LATEST)
    within = np.flatnonzero(ends <= latest)  # the others need no look, which takes 2 µs
    within = within[np.argsort(starts[within], kind="stable")]
    columns = (column[within].tolist() for column in (starts, ends))
    for number, start, end in zip(within.tolist(), *columns, strict=True):
        while begun < len(events) and events[begun][0] <= start:
            waiting.append(events[begun])
            begun += 1
        containing = [event for event in waiting if event[1] >= end]
        one = min(containing, key=itemgetter(1)) if containing else None
        waiting = [event for event in waiting if event[1] >= start and event is not one]
        if one is not None:
            found[number] = one[2]
    return found


def _joined(parts: list[ThreadLane]) -> ThreadLane:
    events = concatenated(part.events for part in parts)
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
                lane.is_unnamed = kind == "Python"
