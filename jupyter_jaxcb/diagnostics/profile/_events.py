"""Read the events of JAX's profiler into spans on the recorder's clock."""

from __future__ import annotations

import re
import warnings
from array import array
from collections import defaultdict
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ._spans import NONE, spans

CLOCK = "jaxcb clock "  # begins the names of the marks by which the two clocks are compared
MEASURED = "jaxcb event"  # the name of events by which their cost is measured
OWN = " own"  # ends the names of the marks that the thread of the block makes
_END = "end: "  # begins the name of the event in which XLA notes the end of an operation
_DISPATCH = re.compile(r"PjitFunction\((.*)\)|(shard_args|np\.asarray.*)")
# The names of operations that call the host.
CALLBACK = re.compile(r"(?:jaxcb_\w+|pure|io|debug|buffer)_callback\b|debug_print\b")
# Arrays of NumPy on their way to a device, which on a CPU is a copy too: how each copy begins, and
# how it may go on in another thread.
_COPY = re.compile(r"DevicePut(?:WithSharding)?|(H2D Dispatch|.*::LinearizeIntoImpl)")
_STATS = ("hlo_op", "hlo_module", "program_id")


class Key(NamedTuple):
    """What an event is."""

    kind: str  # "xla", "copy" or "dispatch"; other events are not kept
    name: str  # of XLA's operation, or of the function that is dispatched
    module: str = ""  # of an operation: the name of its program
    program: int | None = None  # and XLA's number of that program
    is_rest: bool = False  # goes on with what another event began, and is not counted


class Events(NamedTuple):
    """The events of one run of the profiler."""

    table: np.ndarray  # spans, whose parts are indices into `keys`, and lanes into `lanes`
    keys: list[Key]
    lanes: list[str]  # the names of threads and device streams
    own: int  # the lane of the block's thread; `NONE`: it is not known
    total: int  # with those that are not kept, without `MEASURED`
    last_ns: int  # the latest time that is known of the profiler


NO_EVENTS = Events(spans([], [], [], []), [], [], NONE, 0, 0)


def read_events(data: Any) -> Events:
    """Read a `jax.profiler.ProfileData`."""
    with warnings.catch_warnings():
        # Python 3.13 warns of the classes of jaxlib.
        warnings.simplefilter("ignore", DeprecationWarning)
        return _Reader().read(data)


class _Reader:
    def __init__(self) -> None:
        self._keys: dict[Key, int] = {}
        # By the name of the event, for threads and for devices.
        self._kept: tuple[dict[str, Key], ...] = {}, {}
        self._operations: dict[tuple[str, Any], int] = {}  # by the name of the event and program
        self._ends: defaultdict[str, list[float]] = defaultdict(list)  # by XLA's name
        self._marks: list[tuple[float, float]] = []  # the profiler's clock, what to add to it
        self._columns = array("d"), array("d"), array("q"), array("q")  # of the table
        self._own = NONE
        self._total = 0

    def read(self, data: Any) -> Events:
        lanes = []
        for name, is_device, events in _lines(data):
            self._read(events, is_device, len(lanes))
            lanes.append(name)
        starts, ends, keys, lane = map(np.array, self._columns)
        for name, ended in self._ends.items():  # the operation may have gone on in other threads
            wanted = [n for key, n in self._keys.items() if key[:2] == ("xla", name)]
            own = np.flatnonzero(np.isin(keys, wanted))
            # If there are not as many, the profile began or ended in one of them. The event of a
            # callback ends when the host function does; what notes its end may be late.
            if len(own) == len(ended) and not CALLBACK.match(name):
                own = own[np.argsort(starts[own], kind="stable")]
                ends[own] = np.maximum(ends[own], np.sort(ended))
        starts, ends = self._on_recorders_clock(starts), self._on_recorders_clock(ends)
        table = spans(starts, ends, keys, lane)
        if self._own == NONE:
            # The profiler was stopped and started again: the thread that starts most programs.
            dispatch = [n for key, n in self._keys.items() if key.kind == "dispatch"]
            started = np.bincount(lane[np.isin(keys, dispatch)].astype(np.int64))
            self._own = int(started.argmax()) if len(started) else NONE
        last = max([int(theirs + ours) for theirs, ours in self._marks], default=0)
        last = int(table["end"].max(initial=last))
        return Events(table, list(self._keys), lanes, self._own, self._total, last)

    def _read(self, events: Any, is_device: bool, lane: int) -> None:
        starts, ends, keys, lanes = self._columns
        kept = self._kept[is_device]
        until = {"dispatch": 0.0, "copy": 0.0}  # the end of the last one
        for event in events:  # there may be a million
            title = event.name
            key = kept.get(title)
            if key is None:
                key = kept[title] = _key_of(title, event, is_device)
            kind = key.kind
            self._total += kind != MEASURED
            if kind == "xla":
                number = self._operation(key, event, is_device)
            elif kind == _END:
                self._ends[key.name].append(event.end_ns)
                continue
            elif kind == CLOCK:
                ours = int(title[len(CLOCK) :].removesuffix(OWN))
                self._marks.append((event.start_ns, ours - event.start_ns))
                self._own = lane if title.endswith(OWN) else self._own
                continue
            elif kind in until and event.start_ns >= until[kind]:  # no part of the one before
                until[kind] = event.end_ns
                number = self._keys.setdefault(key, len(self._keys))
            else:
                continue
            starts.append(event.start_ns)
            ends.append(event.end_ns)
            keys.append(number)
            lanes.append(lane)

    def _operation(self, key: Key, event: Any, is_device: bool) -> int:
        """Return the number of an operation's key; to make each key again would take long."""
        program = next((value for stat, value in event.stats if stat == "program_id"), None)
        known = None if is_device or program is None else self._operations.get((key.name, program))
        if known is not None:  # a kernel of a device may be part of several operations
            return known
        stats = {stat: value for stat, value in event.stats if stat in _STATS}
        title, module = str(stats.get("hlo_op", key.name)), str(stats.get("hlo_module", ""))
        found = Key("xla", title, module, None if program is None else int(program))
        number = self._operations[key.name, program] = self._keys.setdefault(found, len(self._keys))
        return number

    def _on_recorders_clock(self, column: np.ndarray) -> np.ndarray:
        """Return times on the recorder's clock: the zeros of both differ, and a little their rates.

        The event of a mark begins after its time was read, sometimes long after. So of the marks at
        the beginning the one with the least delay counts, and of those at the end.
        """
        marks = sorted(self._marks) or [(0.0, 0.0)]
        middle = (marks[0][0] + marks[-1][0]) / 2
        halves = [[one for one in marks if (one[0] > middle) == late] for late in (False, True)]
        best = [max(half, key=itemgetter(1)) for half in halves if half]
        times, offsets = zip(*best, strict=True)
        return (column + np.interp(column, times, offsets)).astype(np.int64)


def _lines(data: Any) -> Iterator[tuple[str, bool, Any]]:
    """Yield the name of each thread or device, whether it is a device, and its events."""
    for plane in data.planes:
        if plane.name == "/host:CPU":
            yield from ((line.name, False, line.events) for line in plane.lines)
        elif plane.name.startswith("/device:"):
            device = plane.name.removeprefix("/device:")
            lines = list(plane.lines)
            # Other lines repeat the same events: by module, by step, by Python name.
            streams = [line for line in lines if line.name.startswith("Stream")]
            for line in streams or [line for line in lines if line.name == "XLA Ops"]:
                yield f"{device} {line.name}", True, line.events


def _key_of(title: str, event: Any, is_device: bool) -> Key:
    """Return the key of all events of this name; of operations it lacks the program."""
    if is_device:
        return Key("copy" if "memcpy" in title.lower() else "xla", title)
    if title == MEASURED or title.startswith(CLOCK):
        return Key(MEASURED if title == MEASURED else CLOCK, title)
    if title.startswith(_END):
        return Key(_END, title[len(_END) :])
    if copy := _COPY.fullmatch(title):
        return Key("copy", "device_put", is_rest=copy[1] is not None)
    if dispatch := _DISPATCH.fullmatch(title):
        return Key("dispatch", dispatch[1] or dispatch[2])
    is_operation = any(stat == "hlo_op" for stat, _ in event.stats)
    return Key("xla" if is_operation else "", title)
