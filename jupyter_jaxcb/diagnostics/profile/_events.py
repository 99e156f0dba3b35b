"""Read the events of JAX's profiler into arrays."""

from __future__ import annotations

import dataclasses
import re
import warnings
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
# Arrays of NumPy on their way to a device, which on a CPU is a copy too.
_COPY = re.compile(r"H2D Dispatch|DevicePut(?:WithSharding)?|.*::LinearizeIntoImpl")
_IGNORED, _ENDED, _MARK = "", "end", "clock"


class Key(NamedTuple):
    """What an event is."""

    kind: str  # "xla", "copy" or "dispatch"
    name: str  # of XLA's operation, or of the function that is dispatched
    module: str = ""  # of an operation: the name of its program
    program: int | None = None  # and XLA's number of that program


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
        self._ends: dict[str, list[float]] = {}  # of operations, by name
        self._count = 0

    def read(self, data: Any) -> Events:
        lanes = [self._lane(name, device, line) for name, device, line in _lines(data)]
        keys = list(self._keys)
        for name, ended in self._ends.items():
            if CALLBACK.match(name):
                continue  # its event ends when the host function does; that of its end may be late
            _extend(lanes, [n for n, key in enumerate(keys) if key[:2] == ("xla", name)], ended)
        return Events(lanes, keys, self._count)

    def _lane(self, name: str, is_device: bool, line: Any) -> LaneEvents:
        rows: list[tuple[float, float, int]] = []
        marks, is_own = [], False
        until = {"dispatch": 0.0, "copy": 0.0}  # the end of the last one
        kinds: dict[str, str] = {} if is_device else self._kinds
        keys, ends = self._keys, self._ends
        for event in line.events:
            title = event.name
            self._count += title != MEASURED
            kind = kinds.get(title)
            if kind is None:
                kind = kinds[title] = _kind(title, event, is_device)
            if kind == _IGNORED:
                continue
            if kind in until:
                if event.start_ns < until[kind]:
                    continue  # a part of the one before
                until[kind] = event.end_ns
            if kind == _ENDED:
                ends.setdefault(title[len(_END) :], []).append(event.end_ns)
            elif kind == _MARK:
                marks.append((int(title[len(CLOCK) :].removesuffix(OWN)), event.start_ns))
                is_own = is_own or title.endswith(OWN)
            else:
                key = _operation(title, event) if kind == "xla" else Key(kind, _short(title))
                place = keys.setdefault(key, len(keys))
                rows.append((event.start_ns, event.end_ns, place))
        starts, stops, places = np.array(rows, np.float64).reshape(-1, 3).T
        return LaneEvents(name, is_device, starts, stops, places.astype(np.int64), marks, is_own)


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
    if title.startswith(_END):
        return _ENDED
    if title.startswith(CLOCK):
        return _MARK
    if _COPY.fullmatch(title):
        return "copy"
    if _DISPATCH.fullmatch(title):
        return "dispatch"
    return "xla" if any(name == "hlo_op" for name, _ in event.stats) else _IGNORED


def _short(title: str) -> str:
    if _COPY.fullmatch(title):
        return "device_put"
    found = _DISPATCH.fullmatch(title)
    return title if found is None else found[1] or found[2]


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
