"""Read the events of JAX's profiler into arrays."""

from __future__ import annotations

import dataclasses
import re
import warnings
from array import array
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

CLOCK = "jaxcb clock "  # begins the names of the marks by which the two clocks are compared
MEASURED = "jaxcb event"  # the name of events by which their cost is measured
OWN = " own"  # ends the names of those that the thread of the block makes
_END = "end: "  # begins the name of the event in which XLA notes the end of an operation
_DISPATCH = re.compile(r"PjitFunction\((.*)\)|(shard_args|np\.asarray.*)")
# The names of operations that call the host.
CALLBACK = re.compile(r"(?:jaxcb_\w+|pure|io|debug|buffer)_callback\b|debug_print\b")
# Arrays of NumPy on their way to a device, which on a CPU is a copy too: how each copy begins, and
# how it may go on in another thread.
_COPY = re.compile(r"DevicePut(?:WithSharding)?|(H2D Dispatch|.*::LinearizeIntoImpl)")
_IGNORED, _MEASURED, _ENDED, _MARK = "", "cost", "end", "clock"


class Key(NamedTuple):
    """What an event is."""

    kind: str  # "xla", "copy" or "dispatch"
    name: str  # of XLA's operation, or of the function that is dispatched
    module: str = ""  # of an operation: the name of its program
    program: int | None = None  # and XLA's number of that program
    is_rest: bool = False  # goes on with what another event began, and is not counted


@dataclasses.dataclass
class LaneEvents:
    """The events of one thread or device stream; times are on the profiler's clock."""

    name: str
    is_device: bool
    starts: np.ndarray
    ends: np.ndarray
    keys: np.ndarray  # indices into `Events.keys`
    marks: list[tuple[int, float]]  # time on the recorder's clock, and on the profiler's
    is_own: bool = False  # it is the thread of the block


class Events(NamedTuple):
    """The events of one run of the profiler."""

    lanes: list[LaneEvents]
    keys: list[Key]
    total: int  # with those that are not kept, without `MEASURED`

    @property
    def last_ns(self) -> int:
        """The latest time that is known of the profiler."""
        ends = [int(lane.ends.max()) for lane in self.lanes if len(lane.ends)]
        return max([*ends, *(ours for lane in self.lanes for ours, _ in lane.marks)], default=0)


def read_events(data: Any) -> Events:
    """Read a `jax.profiler.ProfileData`."""
    with warnings.catch_warnings():
        # Python 3.13 warns of the classes of jaxlib.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _Reader().read(data)


class _Reader:
    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}  # by the name of the event
        self._keys: dict[Key, int] = {}
        self._operations: dict[tuple[str, Any], int] = {}  # keys by name and program
        self._ends: dict[str, list[float]] = defaultdict(list)  # by the name of the event
        self._count = 0

    def read(self, data: Any) -> Events:
        lanes = [self._lane(name, device, line) for name, device, line in _lines(data)]
        keys = list(self._keys)
        for title, ended in self._ends.items():
            name = title[len(_END) :]
            if CALLBACK.match(name):
                continue  # its event ends when the host function does; that of its end may be late
            _extend(lanes, [n for n, key in enumerate(keys) if key[:2] == ("xla", name)], ended)
        return Events(lanes, keys, self._count)

    def _lane(self, name: str, is_device: bool, line: Any) -> LaneEvents:
        starts, stops, places = array("d"), array("d"), array("q")
        marks, is_own = [], False
        until = {"dispatch": 0.0, "copy": 0.0}  # the end of the last one
        kinds: dict[str, str] = {} if is_device else self._kinds
        for event in line.events:  # there may be a million
            title = event.name
            kind = kinds.get(title)
            if kind is None:
                kind = kinds[title] = _kind(title, event, is_device)
            self._count += kind != _MEASURED
            if kind == "xla":
                places.append(self._operation(title, event, is_device))
            elif kind == _ENDED:
                self._ends[title].append(event.end_ns)
                continue
            elif kind == _MARK:
                marks.append((int(title[len(CLOCK) :].removesuffix(OWN)), event.start_ns))
                is_own = is_own or title.endswith(OWN)
                continue
            elif kind in until and event.start_ns >= until[kind]:  # no part of the one before
                until[kind] = event.end_ns
                places.append(self._number(_host_key(kind, title)))
            else:
                continue
            starts.append(event.start_ns)
            stops.append(event.end_ns)
        columns = np.array(starts), np.array(stops), np.array(places, np.int64)
        return LaneEvents(name, is_device, *columns, marks, is_own)

    def _number(self, key: Key) -> int:
        return self._keys.setdefault(key, len(self._keys))

    def _operation(self, title: str, event: Any, is_device: bool) -> int:
        """Return the number of an operation's key; to make each key again would take long."""
        program = next((value for stat, value in event.stats if stat == "program_id"), None)
        if is_device or program is None:  # a kernel may be part of several operations
            return self._number(_operation(title, event))
        found = self._operations.get((title, program))
        if found is None:
            found = self._operations[title, program] = self._number(_operation(title, event))
        return found


def _lines(data: Any) -> Iterator[tuple[str, bool, Any]]:
    """Yield the lines of threads and devices: name, whether of a device, line."""
    for plane in data.planes:
        if plane.name == "/host:CPU":
            yield from ((line.name, False, line) for line in plane.lines)
        elif plane.name.startswith("/device:"):
            device = plane.name.removeprefix("/device:")
            lines = list(plane.lines)
            # Other lines repeat the same events: by module, by step, by Python name.
            streams = [one for one in lines if one.name.startswith("Stream")]
            for line in streams or [one for one in lines if one.name == "XLA Ops"]:
                yield f"{device} {line.name}", True, line


def _kind(title: str, event: Any, is_device: bool) -> str:
    if is_device:
        return "copy" if "memcpy" in title.lower() else "xla"
    if title == MEASURED:
        return _MEASURED
    if title.startswith(_END):
        return _ENDED
    if title.startswith(CLOCK):
        return _MARK
    if _COPY.fullmatch(title):
        return "copy"
    if _DISPATCH.fullmatch(title):
        return "dispatch"
    return "xla" if any(name == "hlo_op" for name, _ in event.stats) else _IGNORED


def _host_key(kind: str, title: str) -> Key:
    copy, dispatch = _COPY.fullmatch(title), _DISPATCH.fullmatch(title)
    if copy is not None:
        return Key(kind, "device_put", is_rest=copy[1] is not None)
    return Key(kind, title if dispatch is None else dispatch[1] or dispatch[2])


def _operation(title: str, event: Any) -> Key:
    found: dict[str, Any] = {}
    for stat, value in event.stats:
        if stat in ("hlo_op", "hlo_module", "program_id"):
            found[stat] = value
            if len(found) == 3:  # others may follow
                break
    program = found.get("program_id")
    return Key(
        "xla", str(found.get("hlo_op", title)), str(found.get("hlo_module", "")),
        None if program is None else int(program),
    )  # fmt: skip


def _extend(lanes: list[LaneEvents], keys: list[int], ended: list[float]) -> None:
    """Move the end of each operation to where XLA notes it, if it went on in other threads."""
    places = [(lane, np.flatnonzero(np.isin(lane.keys, keys))) for lane in lanes]
    starts = np.concatenate([lane.starts[own] for lane, own in places])
    if len(starts) != len(ended):
        return  # the profile began or ended in one of them
    order = np.argsort(starts, kind="stable")
    stops = np.empty(len(starts))
    stops[order] = np.sort(ended)
    first = 0
    for lane, own in places:
        lane.ends[own] = np.maximum(lane.ends[own], stops[first : first + len(own)])
        first += len(own)
