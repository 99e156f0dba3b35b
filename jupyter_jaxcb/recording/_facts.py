"""The facts a recording is made of: plain values, no references to arrays or functions."""

from __future__ import annotations

import dataclasses
import enum
from typing import NamedTuple

from ._str import printed

# Ends the source of a site that stands for calls whose bind nobody saw.
COMPILED_BEFORE = "in a program compiled before"
OBSERVED = "jax "  # how flavors of JAX's own callbacks begin
LOOPED_METHODS = frozenset({"sequential", "sequential_unrolled"})


class Aval(NamedTuple):
    """An abstract value: shape and dtype without the data."""

    shape: tuple[int, ...]  # of one host call or of a whole batch, as the fact says that has it
    dtype: str  # NumPy's name of it, "float32"

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class VmapLevel(NamedTuple):
    """What one ``vmap`` did to a callback: the innermost ``vmap`` is the first level."""

    size: int  # batch elements
    method: str  # "sequential", "expand_dims", ...
    batched: tuple[bool, ...]  # per flat operand: did this vmap map over it?

    @property
    def looped(self) -> bool:
        """Whether the batch elements are visited one by one on the host."""
        return self.method in LOOPED_METHODS


class Frame(NamedTuple):
    """One frame of the chain of callers of a site."""

    function: str  # its name
    file: str  # as Python has it: a path, or the name of a notebook cell
    line: int  # 1-based
    column: int = 0  # 0-based, in UTF-8 bytes; 0 where it is not told
    cell: bool = False  # the file is a notebook cell (or other source without a file)
    library: bool = False  # the file is not the user's

    @property
    def where(self) -> str:
        """``line 3`` in a cell, ``model.py:12`` in a file; the same on every machine."""
        return _where(self.file, self.line, self.cell)


def _where(file: str, line: int, cell: bool) -> str:
    if cell:
        return f"line {line}"
    return f"{file.replace(chr(92), '/').rsplit('/', 1)[-1]}:{line}"


@dataclasses.dataclass(frozen=True, slots=True)
class Site:
    """The place in user code of one bind, and the calls that led there.

    `callers` are the library's frames between the user's line and the bind, innermost first, and
    then the user's frames around that line, as far as they are in the traced program.
    """

    flavor: str  # "pure", "io", "debug", "buffer", "tap"; "jax pure", ... for JAX's own
    function: str  # name of the host function
    file: str  # as Python has it: a path, or the name of a notebook cell
    line: int  # 1-based
    column: int  # 0-based, in UTF-8 bytes as Python counts it
    cell: bool  # the file is a notebook cell (or other source without a file)
    source: str = dataclasses.field(default="", compare=False)  # the line, stripped
    callers: tuple[Frame, ...] = ()  # innermost first

    @property
    def where(self) -> str:
        """``line 3`` in a cell, ``model.py:12`` in a file; the same on every machine."""
        return _where(self.file, self.line, self.cell)


class Program(NamedTuple):
    """A compiled program that holds, or was to hold, at least one site."""

    name: str  # as in XLA's module, "jit_f"
    platform: str  # "cpu", "cuda", "tpu"
    number: int = 0  # counted over the process: two programs may have one name
    process: int = 0  # that compiled it, in a gathered recording


@dataclasses.dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoweredSite:
    """A site as one program holds it, or as eager code called it (`program` is None).

    Compared by identity: the same line lowered twice is two facts.
    """

    site: Site  # where it was bound
    program: Program | None  # that holds it; None: eager code
    index: int  # position among the program's host callbacks; -1 when eager
    operands: tuple[Aval, ...]  # as XLA hands them over: batch axes lead, outermost first
    results: tuple[Aval, ...]  # as XLA gets them, in the same way
    levels: tuple[VmapLevel, ...] = ()  # the vmaps it went through, innermost first
    version: int = 0  # of the host function's body when this was lowered
    devices: int = 1  # that the program runs on
    shard: int | None = None  # whose device calls, with its shard; None: one calls, for all
    device: str = ""  # of that shard, or of a mesh of one, "cpu:3"; empty where JAX does not say
    gathered_bytes: int = 0  # at most, on their way to the one device that calls
    process: int = 0  # that lowered or called it, in a gathered recording
    serves: int = 1  # batch elements of an eager call with no batched argument

    @property
    def elements(self) -> int | None:
        """Host calls per crossing where the batch elements are looped on the host, else None."""
        if not any(level.looped for level in self.levels):
            return None
        count = 1
        for level in self.levels:
            count *= level.size if level.looped else 1
        return count

    def host_avals(self) -> tuple[tuple[Aval, ...], tuple[Aval, ...]]:
        """Operands and results as one host call sees them: looped axes removed."""
        looped = [level for level in self.levels if level.looped]
        operands = tuple(
            Aval(aval.shape[sum(level.batched[i] for level in looped) :], aval.dtype)
            for i, aval in enumerate(self.operands)
        )
        results = tuple(Aval(a.shape[len(looped) :], a.dtype) for a in self.results)
        return operands, results


class HostCall(NamedTuple):
    """One run of the host function."""

    lowered: int  # index into `Recording.lowered`
    crossing: int  # calls with one number came over in one trip from XLA
    element: int  # row-major batch element under looped vmaps, -1 otherwise
    thread: int  # index into `Recording.threads`
    start_ns: int  # of the recorder's clock, just before the host function ran
    end_ns: int  # just after it returned or raised
    version: int  # which body of a re-registered function ran, counted from 1
    error: str | None  # "ValueError: ..." if it raised
    process: int = 0  # that made it, in a gathered recording
    queued_ns: int = 0  # that it waited for a worker of an executor, with its chunk


class Process(NamedTuple):
    """One of the processes whose recordings were gathered into one."""

    number: int  # as `jax.process_index` has it
    host: str  # the name of its machine
    pid: int  # as the machine numbers it
    offset_ns: int = 0  # what was added to its times, which are those of process 0's clock now
    error_ns: int = 0  # that this is off by, at most; 0: both read one clock


class Worker(NamedTuple):
    """Who runs batch elements for an executor."""

    thread: int  # index into `Recording.threads`, where it is "worker 2 · pid 4711"
    name: str  # of the thread, or the address of a worker of dask's
    pid: int  # of its process
    host: str  # the name of its machine
    clock_error_ns: int  # by how much its times may be off; 0: it has the same clock


class Running(NamedTuple):
    """A host call that had not come back when the recording ended."""

    lowered: int  # index into `Recording.lowered`
    element: int  # as in `HostCall`
    number: int  # among the calls of its host function, counted from 1
    thread: str  # its name
    elapsed_ns: int  # since it began
    stack: tuple[Frame, ...]  # of the user's code, innermost first


class SampleValues(NamedTuple):
    """What one host call was given and answered, in a few words each: the first calls of a site."""

    lowered: int  # index into `Recording.lowered`
    crossing: int  # as in `HostCall`
    element: int  # as in `HostCall`
    operands: tuple[str, ...]  # "0.25", "[1, 2, 3, …]"
    results: tuple[str, ...]  # in the same way; empty where it failed
    failed: bool = False  # the host function raised


class NotKept(NamedTuple):
    """Host calls of one site that came when the log was full: counted, without rows."""

    lowered: int  # index into `Recording.lowered`
    error: int  # as in a row: 0, or 1 + an index into `Recording.errors`
    calls: int  # how many
    crossings: int  # of which no call is kept
    host_ns: int  # in the host function, summed over calls


class NotFinite(NamedTuple):
    """Host calls of one site that answered NaN or infinity."""

    lowered: int  # index into `Recording.lowered`
    produced: int  # of finite arguments
    passed_on: int  # given NaN or infinity


class Compilation(NamedTuple):
    """What it took to make one program that holds, or was to hold, a site."""

    program: Program  # that was made
    function: int  # which function object it was made for, by number; 0: not known
    arguments: tuple[Aval, ...]  # of the program, flat
    lower_ns: int  # from jaxpr to StableHLO
    compile_ns: int  # by XLA
    not_cached: bool = False  # the persistent cache is on, and does not keep it
    code: int = 0  # of the function, by number: the same for all of one def; 0: not known
    end_ns: int = 0  # of the recorder's clock, when XLA had compiled it; 0: not known


class Status(enum.StrEnum):
    """What became of a call site in a program."""

    KEPT = "kept"  # in the compiled program (or eager)
    NOT_RUN = "not_run"  # in a compiled program that has not run
    NOT_REACHED = "not_reached"  # in a branch or loop that the run did not enter
    UNUSED = "unused"  # bound, but never lowered, in a program that was compiled
    OPTIMIZED_AWAY = "optimized_away"  # lowered, and gone from the optimised program
    DEDUPLICATED = "deduplicated"  # reached by more call paths than the optimized program has calls
    HOISTED = "hoisted"  # bound in a loop, compiled outside of it
    UNKNOWN = "unknown"  # the optimized program could not be read

    @property
    def words(self) -> str:
        """As a person reads it: ``not reached``."""
        return self.value.replace("_", " ")


ELIDED = frozenset({Status.UNUSED, Status.OPTIMIZED_AWAY, Status.DEDUPLICATED, Status.HOISTED})


class Reason(enum.StrEnum):
    """Why a site has its status; `report` has the words, and what to do about it."""

    # What JAX and XLA made of it.
    UNUSED = "unused"  # its result is not used: JAX dropped it before compiling
    UNUSED_IN_TRACE = "unused_in_trace"  # the same, while JAX traced the function
    SHAPE_ONLY = "shape_only"  # JAX dropped it while tracing: only its result's shape is needed
    DEAD_CODE = "dead_code"  # the compiled program never reaches it
    DEAD_IN_TRACE = "dead_in_trace"  # the same, while JAX traced the function
    IO_IN_DERIVATIVE = "io_in_derivative"  # JAX dropped its own io while it traced a derivative
    EMPTY_BATCH = "empty_batch"  # vmap maps it over an axis of size 0
    EMPTY_LOOP = "empty_loop"  # it is in a loop of length 0
    OTHER_PLATFORM = "other_platform"  # it is in a branch for another platform
    UNREACHABLE = "unreachable"  # XLA proved that a run never reaches it
    UNREACHABLE_BRANCH = "unreachable_branch"  # the same of the branch or loop around it
    OPTIMIZED_AWAY = "optimized_away"  # XLA proved that its result cannot matter
    CONDITION_SKIPPED = "condition_skipped"  # in a loop's condition, which XLA never evaluates
    CONDITION_PARTLY_SKIPPED = "condition_partly_skipped"  # the same, by one of its call paths
    PARTLY_UNUSED = "partly_unused"  # the results of some of its call paths are not used
    DEDUPLICATED = "deduplicated"  # XLA kept fewer calls than there are call paths
    DEDUPLICATED_AND_HOISTED = "deduplicated_and_hoisted"  # the same, and outside of the loop
    HOISTED = "hoisted"  # its arguments do not change in the loop: it is called outside of it
    LOWERED_TOGETHER = "lowered_together"  # JAX lowered it with an equal call, which is counted
    UNREADABLE = "unreadable"  # the optimized program cannot be read
    # What became of it in the runs.
    NOT_RUN = "not_run"  # its program was compiled, and has not run
    RUNS_NOT_SEEN = "runs_not_seen"  # no call, and whether its program ran cannot be seen
    NOT_REACHED = "not_reached"  # a run did not enter the branch or loop around it
    NOT_REACHED_OR_FAILED = "not_reached_or_failed"  # some runs did not, and some failed before it
    EARLIER_ERROR = "earlier_error"  # a run failed before it came to it
    EARLIER_REGISTRATION = "earlier_registration"  # its program calls one that was replaced since
    OTHER_PROCESS = "other_process"  # another process makes its calls, for all
    NO_BATCH_ELEMENT = "no_batch_element"  # called eagerly under a vmap over an axis of size 0
    EMPTY_RESULT = "empty_result"  # its result has no elements
    NO_RESULT = "no_result"  # it returns nothing, so nothing needs it
    # What the recording makes of it.
    PARTLY_OBSERVED = "partly_observed"  # JAX's own callbacks were not observed all the time


class NoteKind(enum.StrEnum):
    """What is worth knowing of a call; `report` has the words."""

    ALL_BRANCHES_RUN = "all_branches_run"  # a batched predicate: each element runs every branch
    FINISHED_ELEMENTS_RUN = "finished_elements_run"  # until a while loop's last element finishes
    UNBATCHED = "unbatched"  # no argument is batched: one call serves all batch elements
    OUT_OF_EMPTY_LOOP = "out_of_empty_loop"  # hoisted out of a loop of length 0, so it is called
    USES_JAX = "uses_jax"  # the host function does
    USES_JAX_AND_CAN_BLOCK = "uses_jax_and_can_block"  # the same, where that can wait for ever
    PARTLY_OBSERVED = "partly_observed"  # calls are missing that came while JAX's were not observed


class JaxUse(NamedTuple):
    """Where a host function uses JAX."""

    name: str  # what it uses, "jax.numpy.max", or as the code has it
    file: str = ""  # of the code that uses it; empty where the host function itself is JAX's
    line: int = 0  # 1-based
    cell: bool = False  # the file is a notebook cell (or other source without a file)
    jitted: bool = False  # the host function itself is of `jax.jit`, or a `jax.custom_jvp`

    def __str__(self) -> str:
        if self.jitted:
            return f"{self.name} itself is JAX's, as of @jax.jit"
        where = _where(self.file, self.line, self.cell)
        return f"{self.name}, {where}" if self.file else self.name


class Note(NamedTuple):
    """Something worth knowing of a call, beside its status."""

    kind: NoteKind  # which also says what of the other fields is told
    batch: tuple[int, ...] = ()  # sizes of the vmaps whose elements share the call, outermost first
    use: JaxUse | None = None  # of JAX in the host function


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What one compiled program made of one bind."""

    site: Site  # where it was bound
    program: Program  # that was compiled
    status: Status  # as compiled: never NOT_RUN or NOT_REACHED, which only a run decides
    index: int = -1  # position among the program's host callbacks; -1: not lowered
    traced_paths: int = 1  # in which the traced program reaches the bind
    written: int | None = None  # host calls of a run as the source reads; None: depends on data
    compiled: int | None = None  # host calls of a run as compiled; None: depends on data
    instructions: int = 0  # that call the host, in the optimised program
    around: tuple[str, ...] = ()  # loops, branches and calls, outermost first: "scan of 5"
    stack: tuple[str, ...] = ()  # the transformations too, as JAX names them: "vmap", "while/body"
    reason: Reason | None = None  # of its status; None when live
    call_paths: int = 0  # of which `instructions` are kept, where the reason is that some are not
    unrolled: bool = False  # JAX unrolled a loop: each step that it wrote is a call path
    unreadable: str = ""  # the error, where the optimized program cannot be read
    notes: tuple[Note, ...] = ()  # what is worth knowing of a live one

    def __str__(self) -> str:
        """Which call it is and what became of it: ``bessel, line 3: unused, its result ...``."""
        return printed(self)
