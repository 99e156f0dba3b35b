"""Find the host calls in an optimized program.

The program is read from XLA's serialized `HloModuleProto`, whose field numbers never change. Its
text is not suitable, because it mixes XLA's syntax with names that the user chose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ._protobuf import Span, fields, numbers

_HOST_CALL = re.compile(
    rb"xla_(?:ffi|ffi_partitioned|buffer)_python_\w+_callback(?:_cmd_buffer)?|jaxcb_compiled_call"
)
_INDEX = re.compile(rb"[{ ]index = (\d+) : ui64\}")
# The op_name of a host call ends with the name of its primitive.
_PRIMITIVE = re.compile(r"(?:^|/)(?:(?:jaxcb_\w+|pure|io|debug|buffer)_callback|debug_print)$")
# A loop in the op_name of an instruction inside it.
_IN_LOOP = re.compile(r"/while/(?:body|cond)\b")
_ONCE = {"call", "fusion", "async-start"}  # opcodes that run their computation once
# Field numbers of XLA's hlo.proto.
_COMPUTATIONS, _ENTRY = 3, 6  # of HloModuleProto
_INSTRUCTIONS, _ID = 2, 5  # of HloComputationProto
_OPCODE, _METADATA, _TARGET, _CALLED, _CONFIG = 2, 7, 28, 38, 43  # of HloInstructionProto
_OP_NAME = 2  # of OpMetadata
# Found in the bytes of every relevant instruction: the keys of `_CALLED`, or part of a target.
_MARKS = re.compile(rb"\xb2\x02|\xb0\x02|_python_|jaxcb_compiled_call")
MAX_CALL_PATHS = 10_000  # to one computation; with more, the program counts as unreadable


class Around(NamedTuple):
    """One loop or branch around an instruction."""

    kind: str  # "loop" or "branch"
    times: int | None  # iterations of a loop; None if that depends on data


class HostCallInstruction(NamedTuple):
    """One path on which a run of the program may reach a host call."""

    op_name: str  # the transformations and control flow around it, as JAX names them
    around: tuple[Around, ...]  # outermost first
    each: int = 1  # host calls made each time, on the devices of this process
    gone: int = 0  # loops in its op_name that are no longer in the program

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


class _HostCall(NamedTuple):
    number: int  # its index among the program's callbacks
    op_name: str
    computation: int


def host_call_instructions(module: bytes) -> dict[int, list[HostCallInstruction]]:
    """Return the host calls of an optimized module, by their index among the program's callbacks.

    Args:
        module: a serialized `HloModuleProto`.

    Raises:
        ValueError: if the module does not have the expected structure.
    """
    program = _Module(module)
    found: dict[int, list[HostCallInstruction]] = {}
    for call in program.host_calls:
        call_paths = program.call_paths(call.computation)
        if not call_paths:
            raise ValueError("no call path leads to a host call")
        found.setdefault(call.number, []).extend(
            HostCallInstruction(call.op_name, path, gone=program.gone(call)) for path in call_paths
        )
    return found


class _Module:
    """The host calls and the call graph of a module, read in one pass."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._loops: set[str] = set()  # their names
        self.host_calls: list[_HostCall] = []
        self._callers: dict[int, list[tuple[int, Around | None]]] = {}
        self._call_paths: dict[int, list[tuple[Around, ...]]] = {}
        for number, value in fields(data, Span(0, len(data))):
            if number == _ENTRY and isinstance(value, int):
                self._call_paths[value] = [()]
            elif number == _COMPUTATIONS and isinstance(value, Span):
                self._read_computation(value)
        if not self._call_paths:
            raise ValueError("the module has no entry computation")

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

    def gone(self, call: _HostCall) -> int:
        """Count the loops in the op_name of a host call that are no longer in the module.

        XLA replaces a loop of one iteration by its body. A call that was hoisted leaves its loop
        in the module.
        """
        ends = (found.start() + len("/while") for found in _IN_LOOP.finditer(call.op_name))
        return sum(call.op_name[:end] not in self._loops for end in ends)

    def _read_computation(self, span: Span) -> None:
        own, instructions = 0, []
        for number, value in fields(self._data, span):
            if number == _ID and isinstance(value, int):
                own = value
            elif number == _INSTRUCTIONS and isinstance(value, Span) and self._matters(value):
                instructions.append(value)
        for instruction in instructions:
            self._read_instruction(own, instruction)

    def _matters(self, instruction: Span) -> bool:
        """Return whether it may call a computation or the host; most instructions do neither."""
        return _MARKS.search(self._data, *instruction) is not None

    def _read_instruction(self, computation: int, span: Span) -> None:
        called: list[int] = []
        values = dict.fromkeys((_OPCODE, _METADATA, _TARGET, _CONFIG), Span(0, 0))
        for number, value in fields(self._data, span):
            if number == _CALLED:
                called += numbers(self._data, value)
            elif number in values and isinstance(value, Span):
                values[number] = value
        opcode = self._bytes(values[_OPCODE]).decode()
        config = self._bytes(values[_CONFIG])
        if _HOST_CALL.fullmatch(self._bytes(values[_TARGET])):
            index = _INDEX.search(config)
            if index is None:
                raise ValueError("a host call has no index")
            op_name = self._op_name(values[_METADATA])
            self.host_calls.append(_HostCall(int(index[1]), op_name, computation))
        elif called:
            op_name = self._op_name(values[_METADATA])
            if opcode == "while":
                self._loops.add(op_name)
            around = _around(opcode, config, op_name, len(called))
            for callee, step in zip(called, around, strict=True):
                self._callers.setdefault(callee, []).append((computation, step))

    def _op_name(self, metadata: Span) -> str:
        for number, value in fields(self._data, metadata):
            if number == _OP_NAME and isinstance(value, Span):
                return self._bytes(value).decode(errors="replace")
        return ""

    def _bytes(self, span: Span) -> bytes:
        return self._data[span.start : span.end]


def _around(opcode: str, config: bytes, op_name: str, count: int) -> Iterator[Around | None]:
    """Yield the loop or branch around each of the `count` computations that it calls, or None."""
    if opcode == "while":
        trips = json.loads(config or b"{}").get("known_trip_count")
        times = None if trips is None else int(trips["n"])
        yield Around("loop", times)  # its body
        # If XLA knows the number of iterations, it does not evaluate the condition.
        yield Around("loop", None if times is None else 0)
        return
    around = Around("loop", None)  # a reduction, for one, calls once for each element
    if opcode in _ONCE:
        around = None
    elif opcode == "conditional":
        # XLA puts a call that one of several devices makes into a branch, which does not count.
        around = None if _PRIMITIVE.search(op_name) else Around("branch", None)
    for _ in range(count):
        yield around


def host_call_index(target: bytes, config: bytes) -> int | None:
    """Return the index of a host call among the program's callbacks; None for other instructions.

    Args:
        target: what a custom call calls; empty for other instructions.
        config: its configuration.
    """
    index = _INDEX.search(config) if _HOST_CALL.fullmatch(target) else None
    return None if index is None else int(index[1])


def instructions_by_index(
    read: Callable[[], bytes],
) -> tuple[dict[int, list[HostCallInstruction]], str]:
    """Return the host calls of the optimized program that `read` returns, or why it failed."""
    try:
        return host_call_instructions(read()), ""
    except Exception as error:  # a later JAX or XLA may differ in any way
        return {}, f"{type(error).__name__}: {error}"
