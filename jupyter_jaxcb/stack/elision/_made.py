"""Read from an optimized program which host calls it makes: the text of its HLO.

An instruction is one line: its name, type and operands, what it calls, then attributes, metadata
and backend configuration. Names that the user chose are in the attributes, as they are, and in the
metadata, with quotes escaped. So what is before them is searched from the left, and what is after
them from the right, and nothing that a user wrote is taken for HLO.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ...recording import Frame
from ..trace import is_cell, is_user_code

MAX_CALL_PATHS = 10_000  # to one computation; with more, the program counts as unreadable

_COMPUTATION = re.compile(r"(ENTRY )?%([^ ]+) \(.*\{$")
_INSTRUCTION = re.compile(r"  (?:ROOT )?%([^ ]+) = ")
_OPCODE = re.compile(r" ([a-z][a-z0-9-]*)\(")
_USERS = re.compile(r", (?:frontend_attributes|metadata)=\{")
_OP_NAME = re.compile(r'\bop_name="((?:[^"\\]|\\.)*)"')
_TARGET = re.compile(r'custom_call_target="([^"]*)"')
_HOST_CALL = re.compile(
    r"xla_(?:ffi|ffi_partitioned|buffer)_python_\w+_callback(?:_cmd_buffer)?|jaxcb_compiled_call"
)
_INDEX = re.compile(r"[{ ]index = (\d+) : ui64\}")
_WHILE = re.compile(r"condition=%([^ ,]+), body=%([^ ,]+)")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CALLED = re.compile(r"(?<!predecessors)=\{?(%[^}, ]+(?:, ?%[^}, ]+)*)")
# The op_name of a host call ends with the name of its primitive.
_PRIMITIVE = re.compile(r"(?:^|/)(?:(?:jaxcb_\w+|pure|io|debug|buffer)_callback|debug_print)$")
# A loop in the op_name of an instruction inside it.
_IN_LOOP = re.compile(r"/while/(?:body|cond)\b")
# Opcodes that run their computation once; GPU programs have their command buffers as calls. Others,
# such as a reduction, run it for each element.
_ONCE = {"call", "fusion", "async-start"}
# They wait for what async-start has begun, and may name its computation again.
_WAITS = {"async-update", "async-done"}
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")
_NUMBERED = re.compile(r"(?:\.\d+)+$")


class HostCall(NamedTuple):
    """One path on which a run of the program may reach a host call."""

    op_name: str  # the transformations and control flow around it, as JAX names them
    times: int | None  # how often a run reaches it; None if that depends on data
    loops: int  # around it
    once: int  # of these, those of one iteration
    named: int = 0  # loops in its op_name: before XLA optimized the program
    gone: int = 0  # of these, those that are no longer in the program
    each: int = 1  # host calls made each time, on the devices of this process
    unsure: bool = False  # a loop that it left may be gone, too: the one of its name is another

    @property
    def calls(self) -> int | None:
        """The number of host calls of a run; None if that depends on data."""
        return 0 if self.each == 0 else None if self.times is None else self.times * self.each


class Operation(NamedTuple):
    """An operation of a program, as a profile names it."""

    name: str  # JAX's primitive, "dot_general", or else XLA's opcode
    place: Frame | None  # the innermost line of user code; None: unknown
    host_call: int | None = None  # its index among the program's host callbacks; None: none


class _Instruction(NamedTuple):
    name: str  # "dot_general.3"
    opcode: str
    computation: str  # that it is in
    head: str  # the line without attributes, metadata and configuration
    line: str

    @property
    def op_name(self) -> str:
        names = _OP_NAME.findall(self.line)
        return names[-1] if names else ""

    @property
    def frame(self) -> int:
        """The number of its frame of Python among those of the program; 0: unknown."""
        numbers = _FRAME.findall(self.line)
        return int(numbers[-1]) if numbers else 0

    @property
    def config(self) -> str:
        """Its backend configuration, which is the last part of the line."""
        config = self.line.rpartition(", backend_config=")[2]
        return "" if "metadata={" in config else config

    @property
    def host_call(self) -> int | None:
        """Its index among the program's callbacks; None if it does not call the host."""
        target = _TARGET.search(self.head)
        if target is None or not _HOST_CALL.fullmatch(target[1]):
            return None
        index = _INDEX.search(self.config)
        if index is None:
            raise ValueError("a host call has no index")
        return int(index[1])


def _instructions(hlo: str, wanted: re.Pattern[str]) -> Iterator[_Instruction]:
    """Yield the instructions whose line `wanted` matches, and one for each computation.

    The latter comes before its instructions, and has the opcode "ENTRY" or "".
    """
    computation = ""
    for line in hlo.split("\n"):
        if line[:2] != "  ":
            if begin := _COMPUTATION.match(line):
                computation = begin[2]
                yield _Instruction(computation, (begin[1] or "").strip(), computation, "", "")
        elif wanted.search(line) and (name := _INSTRUCTION.match(line)):
            users = _USERS.search(line)
            head = line[: users.start()] if users else line
            opcode = _OPCODE.search(head, name.end() - 1)
            yield _Instruction(name[1], opcode[1] if opcode else "", computation, head, line)


_MATTERS = re.compile(r"=\{?%|custom_call_target=")  # it may call a computation or the host


def host_calls(hlo: str) -> dict[int, list[HostCall]]:
    """Return the host calls of an optimized program, by their index among its callbacks.

    Args:
        hlo: the text of the program.

    Raises:
        ValueError: if the program does not have the expected structure.
    """
    # Caller, how often it calls, and whether from a loop.
    callers: dict[str, list[tuple[str, int | None, bool]]] = {}
    calls: list[tuple[int, _Instruction]] = []  # index, instruction
    loops: dict[str, list[int]] = {}  # the frames of the loops, by op_name
    # By computation, for each path to it: how often a run takes it, loops, those of one iteration.
    reached: dict[str, list[tuple[int | None, int, int]]] = {}

    def called(name: str, caller: str, times: int | None, is_loop: bool = False) -> None:
        callers.setdefault(name.strip(" %"), []).append((caller, times, is_loop))

    for one in _instructions(hlo, _MATTERS):
        if one.opcode in ("", "ENTRY"):
            if one.opcode:
                reached[one.computation] = [(1, 0, 0)]
        elif (index := one.host_call) is not None:
            calls.append((index, one))
        elif one.opcode == "while":
            loops.setdefault(one.op_name, []).append(one.frame)
            trips, names = _TRIPS.search(one.config), _WHILE.search(one.head)
            if names is None:
                raise ValueError("a loop has no body")
            times = int(trips[1]) if trips else None
            # If XLA knows the number of iterations, it does not evaluate the condition.
            called(names[1], one.computation, 0 if trips else None, True)
            called(names[2], one.computation, times, True)
        elif one.opcode not in _WAITS:
            # XLA puts a call that one of several devices makes into a branch, which does not count.
            is_for_one = one.opcode == "conditional" and _PRIMITIVE.search(one.op_name)
            times = 1 if one.opcode in _ONCE or is_for_one else None
            for names in _CALLED.findall(one.head):
                for name in names.split(","):
                    called(name, one.computation, times)
    if not reached:
        raise ValueError("the program has no entry computation")

    def paths(computation: str) -> list[tuple[int | None, int, int]]:
        if computation not in reached:
            reached[computation] = []  # HLO has no recursion
            found = [
                (
                    None if times is None or often is None else times * often,
                    loops + is_loop,
                    once + (is_loop and times == 1),
                )
                for caller, times, is_loop in callers.get(computation, ())
                for often, loops, once in paths(caller)
            ]
            if len(found) > MAX_CALL_PATHS:
                raise ValueError(f"there are more than {MAX_CALL_PATHS:,} paths to one computation")
            reached[computation] = found
        return reached[computation]

    frames = functools.cache(lambda: _Frames(hlo))
    instructions: dict[int, list[HostCall]] = {}
    for index, call in calls:
        # XLA replaces a loop of one iteration by its body. A call that was hoisted leaves its loop
        # in the program: one that Python reached through the same calls as the host call.
        ends = [found.start() + len("/while") for found in _IN_LOOP.finditer(call.op_name)]
        left = [loops[call.op_name[:end]] for end in ends if call.op_name[:end] in loops]
        if not paths(call.computation):
            raise ValueError("no call path leads to a host call")
        for times, inside, once in paths(call.computation):
            unsure = False
            if inside < len(left) and call.frame:
                around = {0, *frames().callers(call.frame)}  # 0: of a loop with an unknown frame
                unsure = any(around.isdisjoint(of_loops) for of_loops in left)
            gone = len(ends) - len(left)
            instructions.setdefault(index, []).append(
                HostCall(call.op_name, times, inside, once, len(ends), gone, unsure=unsure)
            )
    return instructions


# ---- for a profile

_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ROW = re.compile(r'(\d+) (?:"((?:[^"\\]|\\.)*)"|\{(.*)\})$')
_FIELD = re.compile(r"(\w+)=(\d+)")


def without_number(name: str) -> str:
    """Return the name of an instruction without its number, "copy" of "copy.2"."""
    return _NUMBERED.sub("", name)


def operations(hlo: str, wanted: Iterable[str]) -> dict[str, Operation]:
    """Return the operations of an optimized program whose names, "dot_general.3", are `wanted`.

    Args:
        hlo: the text of the program.
        wanted: the names.
    """
    frames, wanted = _Frames(hlo), set(wanted)
    return {
        one.name: _operation(one, frames)
        for one in _instructions(hlo, _INSTRUCTION)
        if one.line and one.name in wanted
    }


def _operation(one: _Instruction, frames: _Frames) -> Operation:
    # Without metadata, "copy_fusion.2" says more than its opcode, "fusion".
    short = one.op_name.rpartition("/")[2] if "/" in one.op_name else without_number(one.name)
    name = short if one.opcode not in ("while", "conditional") else one.opcode
    place = frames.innermost_of_user(one.frame) if one.frame else None
    return Operation(name or one.opcode, place, one.host_call)


class _Frames:
    """The lines of Python that the operations of a program refer to, each in its callers."""

    def __init__(self, hlo: str) -> None:
        tables: dict[str, dict[int, Any]] = {name: {} for name in _TABLES}
        rows: dict[int, Any] = {}
        for line in hlo.partition("\n%")[0].split("\n"):
            if line in tables:
                rows = tables[line]
            elif row := _ROW.match(line):
                text = row[2] if row[3] is None else dict(_FIELD.findall(row[3]))
                rows[int(row[1])] = text
        self._files, self._functions, self._lines, self._stack = tables.values()
        # XLA prints the numbers of callers counted from 1, or from 0 for no caller.
        callers = (int(frame.get("parent_frame_id", 0)) for frame in self._stack.values())
        self._no_caller = min(callers, default=0)

    def callers(self, number: int) -> dict[int, Any]:
        """Return a frame and its callers, innermost first, by their numbers."""
        frames: dict[int, Any] = {}
        while number in self._stack and number not in frames:
            frames[number] = self._stack[number]
            number = int(frames[number].get("parent_frame_id", 0)) - self._no_caller
        return frames

    def innermost_of_user(self, number: int) -> Frame | None:
        """Return the innermost line of user code of an operation."""
        for frame in self.callers(number).values():
            line = self._lines.get(int(frame.get("file_location_id", 0)), {})
            file = self._files.get(int(line.get("file_name_id", 0)), "")
            if file and is_user_code(file):
                function = self._functions.get(int(line.get("function_name_id", 0)), "")
                name = function.rpartition(".")[2]
                return Frame(name, file, int(line.get("line", 0)), cell=is_cell(file))
        return None


def program_number(module: bytes) -> int:
    """Return XLA's number of an optimized program, as its profiler has it.

    It is not in the text.

    Args:
        module: a serialized `HloModuleProto`, whose field 5 it is.

    Raises:
        ValueError: if this is not a valid protocol buffer.
    """
    position = 0

    def number() -> int:
        nonlocal position
        value = shift = 0
        while True:
            byte = module[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    try:
        while position < len(module):
            field, kind = divmod(number(), 8)
            if kind == 0:
                value = number()
                if field == 5:
                    return value
            elif kind in (1, 2, 5):
                size = {1: 8, 5: 4}.get(kind) or number()
                position += size
            else:
                raise ValueError(f"a field has the wire type {kind}")
    except IndexError:
        raise ValueError("the module ends in a number") from None
    return 0
