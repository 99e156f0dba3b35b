"""The JSON that front ends get: saved outputs, and the messages of a kernel.

`docs/view_schema.py` makes of these classes the JSON Schema, `view.schema.json`, and the types of
the TypeScript front end, whose names lack the ``View``. In a dictionary with ``total=False``, what
is empty, zero, false or null may be left out, except keys that are `Required`.
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, NamedTuple, NotRequired, Required, TypedDict

from ...recording import PartKind
from ..text import Part
from ._site_view import SiteView

SiteJson = Annotated[dict[str, Any], SiteView]


class FactsView(TypedDict, total=False):
    """What is the same for equal programs: the data of an output."""

    schema: Required[int]  # the number of the schema
    headline: list[Annotated[list[str], Part]]  # worst first
    sites: Required[list[SiteJson]]  # in program order; an output has `measured` keys elsewhere
    full: str  # "the log was full: 3 calls were counted but not logged"; empty: it was not
    ahead: bool  # nothing ran: `expected` is that of one run
    not_observed: int  # JAX's own callbacks that were not recorded: the last part of the headline


class CompilationView(TypedDict):
    """One compilation of a program."""

    program: str
    lower_ns: int
    compile_ns: int
    start_ns: int | None  # of lowering, since the first call, so usually negative; None: unknown


class SavedCallsView(TypedDict):
    """Host calls as columns: compressed by zlib, in base64, see `_columns`."""

    rows: int  # host calls
    unit_ns: int  # of their times
    zlib: str  # start, duration, element, variant, thread and error
    crossings: NotRequired[str]  # absent: every call has its own, or they are not known


class ProfileKindView(TypedDict):
    """What all parts of one kind took."""

    id: PartKind
    name: str  # "host functions"
    wall_ns: int


class ProfilePartView(TypedDict):
    """One part of the wall time of a profiled block."""

    kind: int  # index into `kinds`
    name: str  # "simulate", "dot_general", "jit_step", or "other"
    where: str  # "line 3", "model.py:12", or empty
    wall_ns: int  # its share of the wall time; all shares add up to it
    busy_ns: int  # summed over threads and devices
    count: int  # of calls, operations or compilations; 0: not counted


class ProfileLaneView(TypedDict):
    """A row of the timeline of a profile."""

    name: str
    spans: list[int]  # start, duration, part, start, ...: sorted, and not overlapping


class ProfileView(TypedDict):
    """Where the wall time of a profiled block went."""

    wall_ns: int
    start_ns: int | None  # of the block, since the first call; None: no calls
    headline: str  # "1.30 s: 82 % host functions, 12 % XLA, 3 % crossings, 3 % other"
    advice: list[str]  # each with its figure
    notes: list[str]  # the cost of profiling, what was left out
    kinds: list[ProfileKindView]  # in the order of the bar, without empty ones
    parts: list[ProfilePartView]  # by kind, longest first
    lanes: list[ProfileLaneView]  # the block as the bar divides it, threads, devices


class MeasuredView(TypedDict, total=False):
    """What changes from run to run: the metadata of an output."""

    id: str  # of the recording in a running kernel; empty: none
    environment: dict[str, str]  # versions, the backend, and what was run
    out_of_order: list[str]
    by_worker: list[str]  # number of calls by each worker of an executor
    compilations: list[CompilationView]
    threads: list[str]
    wall_ns: int  # how long the recorded code took; 0: unknown
    headline: list[Annotated[list[str], Part]]  # with the costly function; empty: as in the facts
    time: str  # "5.3 ms: host functions 36 µs, rest 5.26 ms"; empty: nothing was called or compiled
    errors: list[str]
    calls: SavedCallsView | None  # None: sent separately, or there are none
    calls_not_saved: int
    profile: ProfileView  # only of a profiled block
    sites: list[Any]  # of each site in the data, its `measured` keys


@dataclasses.dataclass(frozen=True)
class CallbackView:
    """A registered callback, with the totals of its sites."""

    name: str  # under which it is registered
    flavor: str  # as "pure" or "io"
    options: str  # as its repr names them
    cell: str | None  # the front end's id of the cell; None: a file or an unknown cell
    line: int  # in that cell or file, 1-based; 0: unknown
    where: str  # "line 3"; empty if it is not in a cell
    sites: tuple[int, ...]  # indices of its sites in the message
    calls: int  # host calls
    elided: int  # outcomes with an elided status
    errors: int  # error texts of its sites
    host_ns: int  # in the host function, summed over calls

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return vars(self) | {"sites": list(self.sites)}


class ValueView(TypedDict):
    """What a variable was in a watched cell, or what a host function raised."""

    cell: str | None
    line: int
    source: str  # the line, stripped
    name: str
    text: str  # "loss 0.31 → 0.02"
    bad: bool  # NaN, infinite or raised, but not only after the first bad value
    first: bool  # the first bad value
    details: list[str]


class SnapshotView(TypedDict):
    """The state of a session, for the side panel and the badges."""

    version: NotRequired[str]  # of jupyter_jaxcb
    running: bool  # a cell is
    callbacks: list[Annotated[dict[str, Any], CallbackView]]
    sites: list[SiteJson]
    more_sites: int  # that are not in `sites`
    values: list[ValueView]
    cells: dict[str, int]  # CRC-32 of its executed source, by cell


@dataclasses.dataclass(frozen=True)
class SiteKeyView:
    """What the runs of a cell have in common about a site."""

    function: str
    flavor: str
    where: str
    source: str


class RunSiteView(NamedTuple):
    """The figures of a site in one run."""

    site: int  # index of its key
    consequence: str
    calls: int
    host_ns: int
    p95_ns: int  # of its calls; 0: unknown


class RunView(TypedDict):
    """A run of a cell."""

    id: str  # of its recording
    number: int  # of the execution, as in the prompt
    code: int | None  # index of the code of the cell; null: it is too long
    sites: list[RunSiteView]


class RunsView(TypedDict):
    """The last runs of a cell, oldest first."""

    sites: list[Annotated[dict[str, Any], SiteKeyView]]
    codes: list[str]  # of the cell
    runs: list[RunView]


class ReplyView(TypedDict, total=False):
    """A recording that a view has requested; its calls are in the buffers of the message."""

    id: Required[str]  # that of the request
    facts: Any  # `Facts`; null: the kernel no longer has it
    measured: Any  # `Measured`
    runs: Any  # `Runs` of its cell, up to this one; null: unknown
    rows: int  # host calls
    unit_ns: int  # of their times


@dataclasses.dataclass(frozen=True)
class RunningView:
    """A host call that has been running for some time."""

    function: str  # name of the host function
    where: str  # "line 3", "model.py:12"
    element: int  # of the batch; -1: no element
    thread: str  # name of the thread
    elapsed_ns: int  # since it began


@dataclasses.dataclass(frozen=True)
class ProgressView:
    """The progress of the running cell."""

    elapsed_ns: int  # since the cell began
    since_first_ns: int  # since the first call began; 0: none has
    calls: int  # host calls so far
    rate: float  # calls per second, recently
    expected: int | None  # calls of the runs so far; None: unknown
    run: int  # the number of the run under way, whose calls `expected` are; 0: those of all runs
    running: tuple[RunningView, ...]  # the unfinished calls that have been running for some time
    sites: tuple[SiteView, ...]  # in order of appearance
    not_sent: int  # calls left out of the timeline to limit the load on the kernel
    not_observed: str  # JAX's own callbacks beside them: "2 callbacks of JAX not recorded"; or ""

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return vars(self) | {
            "running": [dict(vars(one)) for one in self.running],
            "sites": [one.to_json() for one in self.sites],
        }


class HangView(TypedDict, total=False):
    """The notice that no host call of the running cell returns."""

    title: str  # empty: the cell goes on
    text: str  # a paragraph on each host call
    stacks: str


class SpotView(TypedDict):
    """A line that an output names, in an element of class ``jaxcb-place``."""

    cell: str | None  # the front end's id; None: it is not in a cell
    line: int  # in that cell
    source: str  # the line, stripped; empty: unknown
    number: int  # of the cell's last run; 0: unknown, or not to be shown


class SpotsView(TypedDict, total=False):
    """The metadata of an output that is not a host trace."""

    places: list[SpotView]  # in the order of the elements


# What the front end reads from outside; it refers to all other classes.
DOCUMENTS = (
    FactsView,
    MeasuredView,
    ProgressView,
    HangView,
    SnapshotView,
    ReplyView,
    RunsView,
    SpotsView,
)
