"""The facts of a profile: where the wall time of a block went."""

from __future__ import annotations

import enum
from typing import NamedTuple

from ._facts import Compilation, Frame, LoweredSite


class PartKind(enum.StrEnum):
    """What a part of the wall time was spent on; an instant belongs to the first that applies."""

    HOST = "host"  # a host function runs
    CROSSING = "crossing"  # XLA is in a callback, but no host function runs
    WAITING = "waiting"  # a queued callback waits because its queue is full
    COPY = "copy"  # data is copied to or from a device
    XLA = "xla"  # an operation of a compiled program runs
    COMPILATION = "compilation"  # JAX traces or lowers, or XLA compiles
    DISPATCH = "dispatch"  # JAX prepares a run: arguments, cached programs, results; its own Python
    PYTHON = "python"  # the block's thread runs Python outside of JAX
    QUEUED = "queued"  # a queued host function runs, and the program does nothing
    IDLE = "idle"  # nothing runs: the block's thread sleeps or waits
    UNKNOWN = "unknown"  # JAX's profiler did not run; the part's name says why, see `Unknown`


BACKGROUND = PartKind.QUEUED  # host calls that count only where the block's thread does nothing


def kind_of(fact: LoweredSite) -> PartKind:
    """Return the kind of the host calls of a site."""
    return PartKind.HOST if fact.is_awaited else BACKGROUND


class Unknown(enum.StrEnum):
    """Why JAX's profiler did not run for a part of a block."""

    EVENTS = "too many events"  # it was stopped for the rest of the block
    READING = "events were read"  # because memory grew, but they were few: it was started again
    STOPPED = "stopped by the program"  # with `jax.profiler.stop_trace`
    STARTING = "not started yet"  # JAX's backends were initialized shortly before
    OTHER = "another profiler ran"  # the program had started it before


OTHER = "other"  # the name of the part that adds up the shorter ones of a kind
# The name of the parts of dispatch in which JAX's own Python runs outside of a dispatched program,
# as for the gradient of a function without `jax.jit`. Their places are the lines that call JAX.
PYTHON_OF_JAX = "Python of JAX"


class Part(NamedTuple):
    """A part of the wall time of a profiled block."""

    kind: PartKind  # what the time was spent on
    name: str  # of the host function, operation or program; empty: of the kind as a whole
    place: Frame | None  # the line of user code; None: unknown
    wall_ns: int  # its share of the wall time: the shares of all parts add up to it
    busy_ns: int  # summed over threads and devices
    times: int  # how often: host calls, operations, compilations, ...; 0: not counted
    lowered: int = -1  # index into `Recording.lowered`: a site of its callback; -1: none


class Lane(NamedTuple):
    """What one thread or device did during a profiled block."""

    name: str  # "main thread", "XLA thread 2", "GPU:0 Stream #7"
    spans: tuple[int, ...]  # of each, one after the other: start since the block's, duration, part


class Profile(NamedTuple):
    """Where the wall time of a block went.

    Short spans of `lanes` are left out where a longer one fills most of 1/1000 of the block.
    """

    start_ns: int  # of the recorder's clock, when the block began
    wall_ns: int  # how long it took
    parts: tuple[Part, ...]  # by kind, longest first
    lanes: tuple[Lane, ...]  # first the block as a whole, then its threads and devices
    compilations: tuple[Compilation, ...]  # of all programs, with and without callbacks
    events: int  # number of events of JAX's profiler
    event_ns: int  # time that the profiler took for each of them, as measured in the block
    reading_ns: int  # time to read the events and to build the profile from them

    def of_kind(self, kind: str) -> int:
        """Return the wall time of a kind in nanoseconds, ``profile.of_kind("host")``.

        Raises:
            ValueError: there is no such kind; the message lists them.
        """
        kinds = [str(one) for one in PartKind]
        if kind not in kinds:
            raise ValueError(f"{kind!r} is no kind of part. Try one of {', '.join(kinds)}.")
        return sum(part.wall_ns for part in self.parts if part.kind == kind)
