"""What a recording holds: rows of host calls, site records, programs; and its file.

A fact is written here once, in the form in which it is saved and shown. Only `Recorder` changes.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import threading
import time
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

# One host call: 48 bytes. `error` is 0, or 1 + an index into `Recording.errors`.
ROW = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("site", "<u4"),
        ("crossing", "<u4"),
        ("element", "<i4"),
        ("thread", "<u4"),
        ("version", "<u4"),
        ("error", "<u4"),
        ("queued_ns", "<i8"),
    ]
)
CAPACITY = 1_000_000  # rows


class Aval(NamedTuple):
    """The shape and the dtype of an array of one host call."""

    shape: tuple[int, ...]
    dtype: str  # as NumPy names it


class VmapLevel(NamedTuple):
    """What one ``vmap`` did to a bind."""

    size: int  # batch elements
    method: str  # the ``vmap_method``
    batched: tuple[bool, ...]  # for each operand, whether this vmap maps over it


class Verdict(NamedTuple):
    """What a compiled program made of one bind."""

    status: str  # a key of `_view.STATUSES`
    asked: int | None  # host calls per run in the program text; None: depends on data
    made: int | None  # host calls per run as compiled; None: depends on data, or unknown
    reason: str = ""  # a key of `_view.REASONS`; empty if it is kept


class Site(NamedTuple):
    """The line of user code of one bind."""

    function: str  # the name of the host function
    flavor: str
    file: str  # as Python names it
    line: int  # 1-based
    column: int  # 0-based, in UTF-8 bytes
    cell: bool  # the file is a notebook cell
    source: str  # the line, stripped


@dataclasses.dataclass(eq=False, slots=True)
class Program:
    """A compiled program with at least one site."""

    number: int  # unique in the process
    name: str
    platform: str
    runs: int | None = None  # None: they are not counted


@dataclasses.dataclass(eq=False, slots=True)
class SiteRecord:
    """A site in one program, or in eager code."""

    site: Site
    program: Program | None  # None: eager code
    operands: tuple[Aval, ...]  # of one host call
    results: tuple[Aval, ...]  # of one host call
    levels: tuple[VmapLevel, ...]  # innermost first
    verdict: Verdict


@dataclasses.dataclass(eq=False, frozen=True)
class Recording:
    """The immutable result of ``with record()``."""

    calls: np.ndarray  # of `ROW`, in the order in which the calls ended
    sites: tuple[SiteRecord, ...]
    threads: tuple[str, ...]
    errors: tuple[str, ...]
    not_kept: tuple[int, ...]  # for each site, its host calls beyond the capacity

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a file that `load` reads: the rows as numpy.savez has them, and JSON."""
        facts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)[1:]}
        with open(path, "wb") as file:
            text = json.dumps(facts, default=_fields).encode()
            np.savez_compressed(file, calls=self.calls, facts=np.frombuffer(text, np.uint8))

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        return _printers[0](self)


_printers: list[Callable[[Recording], Any]] = []


def prints(function: Callable[[Recording], Any]) -> Callable[[Recording], Any]:
    """Let `function` make what IPython displays of a recording: data and metadata."""
    _printers[:] = [function]
    return function


def _fields(record: Any) -> dict[str, Any]:
    return {f.name: getattr(record, f.name) for f in dataclasses.fields(record)}


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a file that `Recording.save` wrote.

    Raises:
        ValueError: the file is damaged, or not a recording.
    """
    with open(path, "rb") as stream:
        try:
            with np.load(stream, allow_pickle=False) as file:
                calls = np.asarray(file["calls"])
                facts = json.loads(file["facts"].tobytes())
            hints = typing.get_type_hints(Recording)
            fields = {name: _typed(hints[name], facts[name]) for name in list(hints)[1:]}
            recording = Recording(calls, **fields)
            _check(recording)
        except Exception as error:  # damage may fail anywhere in zipfile, zlib, NumPy and JSON
            raise ValueError(
                f"cannot read the recording {os.fspath(path)!r}: {error}. Save it again with "
                "recording.save(path)."
            ) from error
    return recording


def _typed(kind: Any, value: Any) -> Any:
    """Return a value of JSON as the annotated type `kind`; raise TypeError if it has another."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if origin is types.UnionType:
        return None if value is None else _typed(arguments[0], value)
    if origin is tuple and isinstance(value, list):
        return tuple(_typed(arguments[0], item) for item in value)
    hints = typing.get_type_hints(kind) if isinstance(kind, type) else {}
    if hints and isinstance(value, dict):
        return kind(**{name: _typed(hints[name], value[name]) for name in hints})
    if hints and isinstance(value, list) and len(value) == len(hints):
        return kind(*map(_typed, hints.values(), value))
    if type(value) is not kind:
        raise TypeError(f"{value!r:.40} is not {getattr(kind, '__name__', kind)}")
    return value


def _check(recording: Recording) -> None:
    if recording.calls.dtype != ROW or recording.calls.ndim != 1:
        raise ValueError("its calls have other fields")
    bounds = {
        "site": len(recording.sites),
        "thread": len(recording.threads),
        "error": len(recording.errors) + 1,
    }
    for field, bound in bounds.items():
        if (recording.calls[field] >= bound).any():
            raise ValueError(f"a call has a number of a {field} that does not exist")
    if len(recording.not_kept) != len(recording.sites) or min(recording.not_kept, default=0) < 0:
        raise ValueError("its numbers of calls beyond the capacity do not fit its sites")


class Recorder:
    """Collects facts from any thread.

    Args:
        clock: returns nanoseconds.
        capacity: the number of rows to keep; later calls are only counted.
    """

    def __init__(
        self, clock: Callable[[], int] = time.perf_counter_ns, capacity: int = CAPACITY
    ) -> None:
        self.clock = clock
        self.crossing = itertools.count().__next__
        self.eager: dict[Any, SiteRecord] = {}  # one for all calls of equal shapes at one site
        self._rows = bytearray()
        self._limit = capacity * ROW.itemsize
        self._not_kept: dict[int, int] = {}  # by number of the site
        self._numbers: dict[SiteRecord, int] = {}
        self._threads: dict[tuple[int, str], int] = {}
        self._errors: dict[str, int] = {}
        self._lock = threading.Lock()  # never held while user code runs

    def number(self, record: SiteRecord) -> int:
        """Return the number of a site, which gets one if needed."""
        number = self._numbers.get(record)
        if number is None:
            with self._lock:
                number = self._numbers.setdefault(record, len(self._numbers))
        return number

    def called(
        self, record: SiteRecord, stamps: Sequence[int], error: str = "", looped: bool = False
    ) -> None:
        """Add the rows of one crossing.

        Args:
            record: the site.
            stamps: the clock before the first call and after each.
            error: of the last call, if it raised.
            looped: whether the calls are those of batch elements 0, 1, ...
        """
        thread = threading.get_ident(), threading.current_thread().name
        number = self.number(record)
        with self._lock:
            rows = np.zeros(len(stamps) - 1, ROW)
            rows["start_ns"], rows["end_ns"] = stamps[:-1], stamps[1:]
            rows["site"], rows["crossing"] = number, self.crossing()
            rows["element"] = range(len(rows)) if looped else -1
            rows["thread"] = self._threads.setdefault(thread, len(self._threads))
            rows["version"] = 1
            if error:
                rows["error"][-1] = self._errors.setdefault(error, len(self._errors) + 1)
            room = max(self._limit - len(self._rows), 0) // ROW.itemsize
            self._rows += rows[:room].tobytes()
            lost = len(rows) - len(rows[:room])
            self._not_kept[number] = self._not_kept.get(number, 0) + lost

    def freeze(self, decide: Callable[[SiteRecord, int], Verdict]) -> Recording:
        """Return what was collected; `decide` gives the verdict on a site with so many calls."""
        with self._lock:
            calls = np.frombuffer(bytes(self._rows), ROW)
            not_kept = [self._not_kept.get(number, 0) for number in self._numbers.values()]
            counts = np.bincount(calls["site"], minlength=len(self._numbers)) + not_kept
            sites = tuple(
                dataclasses.replace(
                    record,
                    program=None if record.program is None else dataclasses.replace(record.program),
                    verdict=decide(record, count),
                )
                for record, count in zip(self._numbers, counts.tolist(), strict=True)
            )
            return Recording(
                calls,
                sites,
                tuple(name for _, name in self._threads),
                tuple(self._errors),
                tuple(not_kept),
            )


_active: Recorder | None = None  # a plain global: XLA calls from threads without the user's context


def active() -> Recorder | None:
    """Return the recorder that host calls report to now, if any."""
    return _active


def activate(recorder: Recorder | None) -> None:
    """Let host calls report to `recorder`; None: to nobody."""
    global _active
    _active = recorder
