"""Read an optimized program, and find its host calls.

XLA serializes it as an `HloModuleProto`, whose field numbers never change. Its text is not
suitable, because it mixes XLA's syntax with names that the user chose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ._protobuf import Message, Span

_HOST_CALL = re.compile(
    r"xla_(?:ffi|ffi_partitioned|buffer)_python_\w+_callback(?:_cmd_buffer)?|jaxcb_compiled_call"
)
_INDEX = re.compile(r"[{ ]index = (\d+) : ui64\}")
# The op_name of a host call ends with the name of its primitive.
_PRIMITIVE = re.compile(r"(?:^|/)(?:(?:jaxcb_\w+|pure|io|debug|buffer)_callback|debug_print)$")
# A loop in the op_name of an instruction inside it.
_IN_LOOP = re.compile(r"/while/(?:body|cond)\b")
# Opcodes that run their computation once; GPU programs have their command buffers as calls.
_ONCE = {"call", "fusion", "async-start"}
# They wait for what async-start has begun, and may name its computation again.
_WAITS = {"async-update", "async-done"}
# Field numbers of XLA's hlo.proto.
_COMPUTATIONS, _MODULE_ID, _ENTRY = 3, 5, 6  # of HloModuleProto
_INSTRUCTIONS, _ID = 2, 5  # of HloComputationProto
_NAME, _OPCODE, _METADATA, _TARGET, _CALLED, _CONFIG = 1, 2, 7, 28, 38, 43  # of HloInstructionProto
_OP_NAME = 2  # of OpMetadata
# Found in the bytes of every relevant instruction: the key of `_CALLED`, or part of a target.
_MARKS = re.compile(rb"\xb2\x02|_python_|jaxcb_compiled_call")
MAX_CALL_PATHS = 10_000  # to one computation; with more, the program counts as unreadable


class Around(NamedTuple):
    """One loop or branch around an instruction."""

    kind: str  # "loop" or "branch"
    times: int | None  # iterations of a loop; None if that depends on data
    name: str = ""  # of the instruction that is the loop


class HostCallInstruction(NamedTuple):
    """One path on which a run of the program may reach a host call."""

    op_name: str  # the transformations and control flow around it, as JAX names them
    around: tuple[Around, ...]  # outermost first
    each: int = 1  # host calls made each time, on the devices of this process
    gone: int = 0  # loops in its op_name that are no longer in the program

    @property
    def named_loops(self) -> int:
        """How many loops were around it before XLA optimized the program."""
        return len(_IN_LOOP.findall(self.op_name))

    @property
    def times(self) -> int | None:
        """How often a run reaches it; None if that depends on data."""
        product = 1
        for step in self.around:
            if step.times is None:
                return None
            product *= step.times
        return product

    @property
    def calls(self) -> int | None:
        """The number of host calls of a run; None if that depends on data."""
        return 0 if self.each == 0 else None if self.times is None else self.times * self.each


class Module:
    """An optimized program.

    Attributes:
        fields: of its `HloModuleProto`.
        number: XLA's number of the program, as its profiler has it.
    """

    def __init__(self, data: bytes) -> None:
        """Read the program, but not its instructions.

        Raises:
            ValueError: if it does not have the expected structure.
        """
        self._data = data
        self.fields = Message(data, Span(0, len(data)))
        self.number = self.fields.number(_MODULE_ID) or 0

    def instructions(self, wanted: Callable[[bytes, Span], object]) -> Iterator[Instruction]:
        """Yield the instructions for which `wanted(data, position)` is true."""
        for own in self.fields.spans(_COMPUTATIONS):
            computation = Message(self._data, own)
            for span in computation.spans(_INSTRUCTIONS):
                if wanted(self._data, span):
                    yield _instruction(computation.number(_ID) or 0, Message(self._data, span))


class Instruction(NamedTuple):
    """One instruction of a program."""

    computation: int  # the number of the computation that it is in
    name: str  # "dot_general.3"
    opcode: str
    target: str  # what a custom call calls
    config: str
    called: list[int]  # the numbers of the computations that it calls
    metadata: Message
    op_name: str  # the transformations and control flow around it, as JAX names them

    @property
    def host_call(self) -> int | None:
        """Its index among the program's callbacks; None if it does not call the host."""
        if not _HOST_CALL.fullmatch(self.target):
            return None
        index = _INDEX.search(self.config)
        if index is None:
            raise ValueError("a host call has no index")
        return int(index[1])


def _instruction(computation: int, fields: Message) -> Instruction:
    metadata = fields.message(_METADATA)
    return Instruction(
        computation,
        fields.text(_NAME),
        fields.text(_OPCODE),
        fields.text(_TARGET),
        fields.text(_CONFIG),
        fields.numbers(_CALLED),
        metadata,
        metadata.text(_OP_NAME),
    )


def host_call_instructions(module: bytes) -> dict[int, list[HostCallInstruction]]:
    """Return the host calls of an optimized program, by their index among its callbacks.

    Args:
        module: a serialized `HloModuleProto`.

    Raises:
        ValueError: if the module does not have the expected structure.
    """
    graph = _CallGraph(Module(module))
    found: dict[int, list[HostCallInstruction]] = {}
    for number, op_name, computation in graph.host_calls:
        call_paths = graph.call_paths(computation)
        if not call_paths:
            raise ValueError("no call path leads to a host call")
        found.setdefault(number, []).extend(
            HostCallInstruction(op_name, path, gone=graph.gone(op_name)) for path in call_paths
        )
    return found


class _CallGraph:
    """The host calls of a program, and who calls their computations."""

    def __init__(self, module: Module) -> None:
        self.host_calls: list[tuple[int, str, int]] = []  # index, op_name, computation
        self._loops: set[str] = set()  # their names
        self._callers: dict[int, list[tuple[int, Around | None]]] = {}
        entry = module.fields.number(_ENTRY)
        if entry is None:
            raise ValueError("the module has no entry computation")
        self._call_paths: dict[int, list[tuple[Around, ...]]] = {entry: [()]}
        for instruction in module.instructions(_matters):
            self._add(instruction)

    def _add(self, one: Instruction) -> None:
        if one.host_call is not None:
            self.host_calls.append((one.host_call, one.op_name, one.computation))
        elif one.called and one.opcode not in _WAITS:
            if one.opcode == "while":
                self._loops.add(one.op_name)
            for callee, step in zip(one.called, _around(one), strict=True):
                self._callers.setdefault(callee, []).append((one.computation, step))

    def call_paths(self, computation: int) -> list[tuple[Around, ...]]:
        """Return the loops and branches around a computation, for each path from the entry."""
        if computation not in self._call_paths:
            self._call_paths[computation] = []  # HLO has no recursion
            found = [
                path if around is None else (*path, around)
                for caller, around in self._callers.get(computation, ())
                for path in self.call_paths(caller)
            ]
            if len(found) > MAX_CALL_PATHS:
                raise ValueError(f"there are more than {MAX_CALL_PATHS:,} paths to one computation")
            self._call_paths[computation] = found
        return self._call_paths[computation]

    def gone(self, op_name: str) -> int:
        """Count the loops in the op_name of a host call that are no longer in the program.

        XLA replaces a loop of one iteration by its body. A call that was hoisted leaves its loop
        in the program.
        """
        ends = (found.start() + len("/while") for found in _IN_LOOP.finditer(op_name))
        return sum(op_name[:end] not in self._loops for end in ends)


def _matters(data: bytes, instruction: Span) -> bool:
    """Return whether it may call a computation or the host; most instructions do neither."""
    return _MARKS.search(data, *instruction) is not None


def _around(one: Instruction) -> Iterator[Around | None]:
    """Yield the loop or branch around each of the computations that it calls, or None."""
    if one.opcode == "while":
        trips = json.loads(one.config or "{}").get("known_trip_count")
        times = None if trips is None else int(trips["n"])
        yield Around("loop", times, one.name)  # its body
        # If XLA knows the number of iterations, it does not evaluate the condition.
        yield Around("loop", None if times is None else 0, one.name)
        return
    around = Around("loop", None)  # a reduction, for one, calls once for each element
    if one.opcode in _ONCE:
        around = None
    elif one.opcode == "conditional":
        # XLA puts a call that one of several devices makes into a branch, which does not count.
        around = None if _PRIMITIVE.search(one.op_name) else Around("branch", None)
    for _ in one.called:
        yield around


def instructions_by_index(
    read: Callable[[], bytes],
) -> tuple[dict[int, list[HostCallInstruction]], str]:
    """Return the host calls of the optimized program that `read` returns, or why it failed."""
    try:
        return host_call_instructions(read()), ""
    except Exception as error:  # a later JAX or XLA may differ in any way
        return {}, f"{type(error).__name__}: {error}"
