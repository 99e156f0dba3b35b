"""The facts of a recording: plain values without references to arrays or functions."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import numpy as np

from ._shown import on_one_line, printed
from ._vmap import VmapLevel, calls_each_time

# Ends the source of a site that groups calls from programs compiled before the observation.
COMPILED_BEFORE = "in a program compiled before"
# Stand for the file of a site whose line is unknown.
COMPILED_EARLIER = "a program compiled earlier"
UNKNOWN_LINE = "an unknown line"
OBSERVED = "jax "  # prefix of the flavors of JAX's own callbacks


class Aval(NamedTuple):
    """An abstract value: shape and dtype without the data."""

    shape: tuple[int, ...]  # of one host call or of a whole batch, depending on where it is used
    dtype: str  # as NumPy names it, "float32"

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Frame(NamedTuple):
    """One frame of the call stack above a site."""

    function: str  # name of the function
    file: str  # as Python names it: a path, or the name of a notebook cell
    line: int  # 1-based
    column: int = 0  # 0-based, in UTF-8 bytes; 0 if unknown
    cell: bool = False  # the file is a notebook cell (or other source without a file)
    library: bool = False  # the file is not the user's

    @property
    def where(self) -> str:
        """Return ``line 3`` in a cell, ``model.py:12`` in a file; the same on every machine."""
        return _where(self.file, self.line, self.cell)


def _where(file: str, line: int, cell: bool) -> str:
    if not line:
        return on_one_line(file)
    if cell:
        return f"line {line}"
    return f"{on_one_line(file.replace(chr(92), '/').rsplit('/', 1)[-1])}:{line}"


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """The place in user code of one bind, and its callers.

    `callers` are, innermost first, the library frames between the user's line and the bind, and
    then the user's frames around that line, as far as they belong to the traced program.
    """

    flavor: str  # "pure", "io", "debug", "buffer", "tap"; "jax pure", ... for JAX's own
    function: str  # name of the host function
    file: str  # as Python names it: a path, or the name of a notebook cell; words if line is 0
    line: int  # 1-based; 0: unknown
    column: int  # 0-based, in UTF-8 bytes as Python counts it
    cell: bool  # the file is a notebook cell (or other source without a file)
    source: str = dataclasses.field(default="", compare=False)  # the line, stripped
    callers: tuple[Frame, ...] = ()  # innermost first

    @property
    def where(self) -> str:
        """Return ``line 3`` in a cell, ``model.py:12`` in a file; the same on every machine."""
        return _where(self.file, self.line, self.cell)

    @property
    def is_of_jax(self) -> bool:
        """Whether the callback is one of JAX's own API."""
        return self.flavor.startswith(OBSERVED)

    @property
    def is_of_earlier_program(self) -> bool:
        """Whether it groups calls from programs compiled before the observation."""
        return self.file == COMPILED_EARLIER or self.source.endswith(COMPILED_BEFORE)


class Cells(Protocol):
    """The cells of a notebook, by the file names that they were compiled under."""

    def number(self, file: str) -> int:
        """The number of its last run, as at its left edge; 0: unknown."""
        ...

    def is_running(self, file: str) -> bool:
        """Whether the cell that runs, or has just ended, was compiled under this name."""
        ...


_cells: Cells | None = None


def set_cells(cells: Cells | None) -> None:
    """Set the cells of the notebook that this process runs; None: it runs none."""
    global _cells
    _cells = cells


def numbers_of(places: Iterable[Site | Frame | None]) -> dict[str, int]:
    """Return the numbers of the cells that these places are in, but of the running cell."""
    if _cells is None:
        return {}
    files = {place.file for place in places if place is not None and place.cell}
    numbers = {file: _cells.number(file) for file in sorted(files) if not _cells.is_running(file)}
    return {file: number for file, number in numbers.items() if number}


def cell_number(place: Site | Frame | str) -> int:
    """Return the number of the cell of a place or file name; 0: it is in none, or it is unknown."""
    if _cells is None or not (isinstance(place, str) or place.cell):
        return 0
    return _cells.number(place if isinstance(place, str) else place.file)


def numbered(place: Site | Frame, number: int) -> str:
    """Name a place in the cell of a number: ``[5] line 3``; 0: ``line 3``."""
    return f"[{number}] {place.where}" if place.cell and number else place.where


def where_now(place: Site | Frame) -> str:
    """Name a place for who reads it in this session: ``[5] line 3``, ``model.py:12``."""
    return numbered(place, cell_number(place))


class Program(NamedTuple):
    """A compiled program whose source has at least one call site."""

    name: str  # of the XLA module, "jit_f"
    platform: str  # "cpu", "cuda", "tpu"
    number: int = 0  # unique in the process, because two programs may have the same name


@dataclasses.dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoweredSite:
    """A site in one program, or as called by eager code (`program` is None).

    Compared by identity: the same line lowered twice gives two different objects.
    """

    site: Site  # place of the bind
    program: Program | None  # the program that holds it; None: eager code
    index: int  # position among the program's host callbacks; -1 when eager
    operands: tuple[Aval, ...]  # as XLA passes them: batch axes lead, outermost first
    results: tuple[Aval, ...]  # as XLA receives them, with the same batch axes
    levels: tuple[VmapLevel, ...] = ()  # the vmap levels around it, innermost first
    version: int = 0  # of the host function's body when this was lowered
    devices: int = 1  # number of devices that the program runs on
    shard: int | None = None  # the shard whose device calls; None: one call for all devices
    device: str = ""  # the device of that shard, "cpu:3"; empty if JAX does not report it
    gathered_bytes: int = 0  # at most, moved to the one device that makes the call
    serves: int = 1  # batch elements of an eager call with no batched argument
    operand_names: tuple[str, ...] = ()  # as the host function's parameters: "x", "params['w']"
    result_names: tuple[str, ...] = ()  # "result", "result['mean']"; empty, as above, if unknown
    queued: bool = False  # the program does not wait for its host calls
    masked: bool = False  # the last operand, a mask, says where to call the host function
    reached: bool = False  # it is true for the batch elements that reach the call
    drop_in: bool = False  # a function with the signature of JAX's made the call
    impure: bool = False  # of a pure callback: the code of the host function has side effects
    library: str = ""  # the package that makes the call with a function of its own, "equinox"

    @property
    def elements(self) -> int | None:
        """Host calls per crossing if the host loops over batch elements, else None.

        JAX's own callbacks are called in a loop of the program, each call with a crossing.
        """
        if self.site.is_of_jax or not any(level.looped for level in self.levels):
            return None
        return calls_each_time(self.levels)

    @property
    def is_awaited(self) -> bool:
        """Whether the program waits for its host calls."""
        return not self.queued

    @property
    def waits_for_elements(self) -> bool:
        """Whether the program waits for a host call for each of several batch elements."""
        return (self.elements or 1) > 1 and not self.masked and not self.queued

    @property
    def calls_each_time(self) -> int | None:
        """Host calls of each crossing; None if a mask decides."""
        return None if self.masked else self.elements or 1

    @property
    def is_empty(self) -> bool:
        """Whether there is no host call, for lack of batch elements."""
        return any(level.is_empty for level in self.levels)

    @property
    def passed(self) -> tuple[Aval, ...]:
        """The operands that host calls get: all but a mask."""
        return self.operands[: len(self.operands) - self.masked]

    def host_avals(self) -> tuple[tuple[Aval, ...], tuple[Aval, ...]]:
        """Return operands and results as one host call sees them: no looped axes and no mask."""
        looped = [level for level in self.levels if level.looped and not self.site.is_of_jax]
        operands = tuple(
            Aval(aval.shape[sum(level.batched[i] for level in looped) :], aval.dtype)
            for i, aval in enumerate(self.passed)
        )
        results = tuple(Aval(a.shape[len(looped) :], a.dtype) for a in self.results)
        return operands, results


# The log of host calls has a row of 48 bytes for each.
ROW = np.dtype(
    [
        ("start_ns", "<i8"),
        ("end_ns", "<i8"),
        ("lowered", "<u4"),
        ("crossing", "<u4"),
        ("element", "<i4"),
        ("thread", "<u4"),
        ("version", "<u4"),
        ("error", "<u4"),  # 0: none, else 1 + index into the errors
        ("queued_ns", "<i8"),  # in the queue; or of the first call of an executor's chunk; else 0
    ]
)


class HostCall(NamedTuple):
    """One run of the host function."""

    lowered: int  # index into `Recording.lowered`
    crossing: int  # number of the crossing; a looped crossing makes several calls
    element: int  # row-major batch element under looped vmaps, -1 otherwise
    thread: int  # index into `Recording.threads`
    start_ns: int  # of the recorder's clock, just before the host function ran
    end_ns: int  # just after it returned or raised
    version: int  # body of a re-registered function that ran, counted from 1
    error: str | None  # "ValueError: ..." if it raised
    queued_ns: int = 0  # from the crossing to the call: in the queue, or waiting for a worker


class Worker(NamedTuple):
    """A worker that runs batch elements for an executor."""

    thread: int  # index into `Recording.threads`, where it is "worker 2 · pid 4711"
    name: str  # of the thread, or the address of a dask worker
    pid: int  # of its process
    host: str  # name of its machine
    clock_error_ns: int  # largest possible error of its times; 0: it reads the same clock


class Running(NamedTuple):
    """A host call that was still running when the recording ended."""

    lowered: int  # index into `Recording.lowered`
    element: int  # as in `HostCall`
    number: int  # among the calls of its host function, counted from 1
    thread: str  # name of the thread
    elapsed_ns: int  # since it began
    stack: tuple[Frame, ...]  # of the user's code, innermost first


class SampleValues(NamedTuple):
    """Argument and result values of one of the first host calls of a site, abbreviated."""

    lowered: int  # index into `Recording.lowered`
    crossing: int  # as in `HostCall`
    element: int  # as in `HostCall`
    operands: tuple[str, ...]  # "0.25", "[0, 1, 2, 3, 4, 5, …] (0 to 14, 3 NaN)"
    results: tuple[str, ...]  # formatted like the operands; empty if the call failed
    failed: bool = False  # the host function raised


class NotKept(NamedTuple):
    """Host calls of one site that were counted but not logged, because the log was full."""

    lowered: int  # index into `Recording.lowered`
    error: int  # as in a row: 0, or 1 + an index into `Recording.errors`
    calls: int = 0  # number of host calls
    crossings: int = 0  # number of crossings without any row
    host_ns: int = 0  # in the host function, summed over calls


class QueueUse(NamedTuple):
    """What happened in the queue to the crossings of one queued site."""

    lowered: int  # index into `Recording.lowered`
    waits: int = 0  # number of crossings for which the program waited because the queue was full
    waited_ns: int = 0  # by the program, summed over these crossings
    full: int = 0  # number of host calls dropped because the queue was full
    ended: int = 0  # number of host calls dropped by an interrupt or by `drop_queued`
    left: int = 0  # number of host calls queued or running when the recording ended
    skipped: int = 0  # number of batch elements after a failed one, which were not called


class MaskUse(NamedTuple):
    """For how many batch elements the mask of one masked site was true.

    A crossing without vmap counts as one element.
    """

    lowered: int  # index into `Recording.lowered`
    elements: int = 0  # of all crossings
    needed: int = 0  # of these, the elements whose mask was true


class ObjectUse(NamedTuple):
    """What happened to the objects of one host object during the recording."""

    name: str  # of its function
    computed: int = 0  # number of calls of the function
    found: int = 0  # number of times that a kept object was used instead
    removed: int = 0  # number of objects pushed out by a limit
    computed_ns: int = 0  # in the function, summed over its calls
    saved_ns: int = 0  # that found objects once took, summed over the times that one was found
    hashed_ns: int = 0  # to hash arguments
    nbytes: int = 0  # memory in bytes of all its objects at the last use


LARGEST_CHECKED = 4_096  # elements of a result that every call is checked for NaN and infinity


class NotFinite(NamedTuple):
    """Host calls of one site that returned NaN or infinity."""

    lowered: int  # index into `Recording.lowered`
    produced: int = 0  # number of such calls with finite arguments
    passed_on: int = 0  # number of such calls whose arguments had NaN or infinity
    infinite: int = 0  # number of such calls that returned infinity, but no NaN


class NotFiniteCall(NamedTuple):
    """One of the first host calls of a recording that returned NaN or infinity."""

    lowered: int  # index into `Recording.lowered`
    crossing: int  # as in `HostCall`
    element: int  # as in `HostCall`
    passed_on: bool  # its arguments had NaN or infinity


class Compilation(NamedTuple):
    """The compilation of one program whose source has a call site."""

    program: Program  # the compiled program
    function: int  # number of the compiled function object; 0: unknown
    arguments: tuple[Aval, ...]  # of the program, flat
    lower_ns: int  # from jaxpr to StableHLO
    compile_ns: int  # in XLA
    not_cached: bool = False  # JAX's persistent cache is on but does not store the program
    code: int = 0  # number of the function's code, equal for all objects of one def; 0: unknown, or
    # code of JAX, as that of `jnp.sin`
    end_ns: int = 0  # when XLA finished, on the recorder's clock; 0: unknown
    weak: tuple[bool, ...] = ()  # per argument: weakly typed, as a Python number? empty: unknown
    names: tuple[str, ...] = ()  # per argument: "x", "params['w']"; empty: unknown


class Status(enum.StrEnum):
    """What happened to a call site in a program."""

    KEPT = "kept"  # in the compiled program (or eager)
    NOT_RUN = "not_run"  # in a compiled program that has not run
    NOT_REACHED = "not_reached"  # in a branch or loop that the run did not enter
    UNUSED = "unused"  # removed by JAX: bound but not lowered (dead-code elimination)
    OPTIMIZED_AWAY = "optimized_away"  # removed by XLA: lowered but not in the optimized program
    DEDUPLICATED = "deduplicated"  # reached by more call paths than the optimized program has calls
    HOISTED = "hoisted"  # bound in a loop, compiled outside it (loop-invariant code motion)
    FEWER = "fewer"  # calls were removed and moved out of loops, or it cannot be told which
    UNKNOWN = "unknown"  # what became of it, or whether its program ran, is unknown

    @property
    def words(self) -> str:
        """Return the status as text, ``not reached``."""
        return self.value.replace("_", " ")


# The statuses of calls of which a program makes fewer than its text says.
ELIDED = frozenset(
    {Status.UNUSED, Status.OPTIMIZED_AWAY, Status.DEDUPLICATED, Status.HOISTED, Status.FEWER}
)


class Reason(enum.StrEnum):
    """Why a site has its status; `report` has the text of each reason and its advice."""

    # Decided by JAX and XLA.
    UNUSED = "unused"  # nothing uses its result: JAX removed it
    IO_IN_DERIVATIVE = "io_in_derivative"  # JAX removed its io callback while tracing a derivative
    NOT_NEEDED = "not_needed"  # it is part of a derivative, which does not need it
    NEVER_REACHED = "never_reached"  # no run can reach it; `Outcome.detail` says why
    OTHER_PLATFORM = "other_platform"  # it is in a branch for another platform
    UNUSED_CHECKPOINT = "unused_checkpoint"  # JAX removed the jax.checkpoint that it is in
    OPTIMIZED_AWAY = "optimized_away"  # XLA proved that its result cannot affect the output
    CONDITION_SKIPPED = "condition_skipped"  # in a loop's condition that XLA never evaluates
    DEDUPLICATED = "deduplicated"  # JAX and XLA kept fewer calls than there are call paths
    HOISTED = "hoisted"  # its arguments do not change in the loop: it is called outside the loop
    FEWER = "fewer"  # calls were removed, and may have been moved out of loops, too
    MAY_BE_HOISTED = "may_be_hoisted"  # traced in more loops than it is called in
    LOWERED_TOGETHER = "lowered_together"  # its calls are counted on the line of an equal call
    UNREADABLE = "unreadable"  # the optimized program cannot be read
    # Decided by the runs.
    NOT_RUN = "not_run"  # its program was compiled but has not run
    RUNS_NOT_SEEN = "runs_not_seen"  # no call was made, and whether its program ran is unknown
    RUN_IN_PART = "run_in_part"  # a run of its program began before the recording or ended after it
    NOT_REACHED = "not_reached"  # no run entered the branch or loop around it
    EARLIER_ERROR = "earlier_error"  # an earlier error stopped the program
    EARLIER_REGISTRATION = "earlier_registration"  # its program calls a replaced registration
    IN_NO_PROGRAM = "in_no_program"  # it was traced, but no program has it
    OTHER_PROCESS = "other_process"  # another process makes its calls on behalf of all
    # Decided by the recording.
    PARTLY_OBSERVED = "partly_observed"  # JAX's own callbacks were observed only part of the time


# Reasons of calls that are not asked for: not on this platform, or not in this derivative.
EXPECTED = frozenset({Reason.NOT_NEEDED, Reason.OTHER_PLATFORM})


class NoteKind(enum.StrEnum):
    """What a note is about; `report` has the text of each."""

    ALL_BRANCHES_RUN = "all_branches_run"  # the predicate is batched: each element runs all
    FINISHED_ELEMENTS_RUN = "finished_elements_run"  # until a while loop's last element finishes
    UNBATCHED = "unbatched"  # no argument is batched: one call serves all batch elements
    OUT_OF_EMPTY_LOOP = "out_of_empty_loop"  # hoisted out of a loop of length 0, so it is called
    USES_JAX = "uses_jax"  # the host function uses JAX
    USES_JAX_AND_CAN_BLOCK = "uses_jax_and_can_block"  # the host function uses JAX, may deadlock
    PARTLY_OBSERVED = "partly_observed"  # calls outside the observation are missing
    COMPILED = "compiled"  # numba compiled the host function
    QUEUED = "queued"  # the program does not wait for its calls
    RUN_AGAIN = "run_again"  # the backward pass of a `jax.checkpoint` makes the call again


class JaxUse(NamedTuple):
    """Where a host function uses JAX."""

    name: str  # the JAX function, "jax.numpy.max", or as the code spells it
    file: str = ""  # of the code that uses it; empty if the host function itself is JAX's
    line: int = 0  # 1-based
    cell: bool = False  # the file is a notebook cell (or other source without a file)
    jitted: bool = False  # the host function is itself a `jax.jit` or `jax.custom_jvp` function

    def __str__(self) -> str:
        return self.words(lambda place: place.where)

    def words(self, where: Callable[[Frame], str]) -> str:
        """Return ``jax.numpy.max, line 3``; `where` names the place."""
        if self.jitted:
            return f"{self.name} is itself a JAX function, as made by @jax.jit"
        place = Frame("", self.file, self.line, cell=self.cell)
        return f"{self.name}, {where(place)}" if self.file else self.name


class Note(NamedTuple):
    """A remark on a call, in addition to its status."""

    kind: NoteKind  # determines which other fields are set
    batch: tuple[int, ...] = ()  # sizes of the vmaps that one call serves, outermost first
    use: JaxUse | None = None  # of JAX in the host function


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What one compiled program made of one bind."""

    site: Site  # place of the bind
    program: Program  # the compiled program
    status: Status  # as compiled: never NOT_RUN or NOT_REACHED, which depend on a run
    index: int = -1  # position among the program's host callbacks; -1: not lowered
    written: int | None = None  # host calls per run in the program text; None: depends on data
    compiled: int | None = None  # host calls per run as compiled; None: depends on data
    instructions: int = 0  # in the optimized program, that call the host for this bind
    around: tuple[str, ...] = ()  # loops, branches and calls, outermost first: "scan of 5"
    stack: tuple[str, ...] = ()  # also transformations, as JAX names them: "vmap", "while/body"
    reason: Reason | None = None  # of its status; None when it is simply kept
    detail: str = ""  # of the reason, in words: why no run can reach it
    call_paths: int = 0  # if some were removed: all call paths, of which `instructions` are kept
    unrolled: bool = False  # JAX unrolled a loop: each unrolled step is a call path
    notes: tuple[Note, ...] = ()  # remarks on its calls, if it is kept

    @property
    def elided(self) -> bool:
        """Whether the program makes fewer host calls than its text asks for.

        It does not ask for values that a derivative does not need, nor for calls on another
        platform.
        """
        return self.status in ELIDED and self.reason not in EXPECTED

    def __str__(self) -> str:
        """Return call site, status and reason: ``bessel, line 3: unused, nothing uses ...``."""
        return printed(self)
