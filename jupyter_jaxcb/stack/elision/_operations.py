"""Find the line of user code, and the callback, of each operation in an optimized program."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...recording import Frame
from ..trace import is_cell, is_user_code
from ._hlo import Instruction, Module
from ._protobuf import Message, first_text

# Field numbers of XLA's hlo.proto.
_FRAMES = 17  # of HloModuleProto
_FILE, _LINE, _FRAME = 3, 4, 15  # of OpMetadata
_FILES, _FUNCTIONS, _PLACES, _STACK = 1, 2, 3, 4  # of StackFrameIndexProto
_NUMBERED = re.compile(r"(?:\.\d+)+$")


class Operation(NamedTuple):
    """An operation of a program, as a profile names it."""

    name: str  # JAX's primitive, "dot_general", or else XLA's opcode
    place: Frame | None  # the innermost line of user code; None: unknown
    host_call: int | None = None  # its index among the program's host callbacks; None: none


def without_number(name: str) -> str:
    """Return the name of an instruction without its number, "copy" of "copy.2"."""
    return _NUMBERED.sub("", name)


def program_number(module: bytes) -> int:
    """Return XLA's number of an optimized module, as its profiler has it."""
    return Module(module).number


def operations(module: bytes, wanted: set[str]) -> dict[str, Operation]:
    """Return the operations of an optimized module whose names, "dot_general.3", are `wanted`."""
    program = Module(module)
    frames = _Frames(program.fields.message(_FRAMES))
    found = program.instructions(lambda data, span: first_text(data, span) in wanted)
    return {one.name: _operation(one, frames) for one in found if one.name in wanted}


def _operation(one: Instruction, frames: _Frames) -> Operation:
    # Without metadata, "copy_fusion.2" says more than its opcode, "fusion".
    short = one.op_name.rpartition("/")[2] if "/" in one.op_name else without_number(one.name)
    named = short if one.opcode not in ("while", "conditional") else one.opcode
    return Operation(named or one.opcode, frames.place(one.metadata), one.host_call)


class _Frames:
    """The lines of Python that the operations of a program refer to, each in its callers."""

    def __init__(self, index: Message) -> None:
        self._files, self._functions = index.texts(_FILES), index.texts(_FUNCTIONS)
        self._places, self._stack = index.messages(_PLACES), index.messages(_STACK)

    def place(self, metadata: Message) -> Frame | None:
        """Return the innermost line of user code of an operation."""
        number = metadata.number(_FRAME)
        for _ in self._stack:
            frame = _at(self._stack, number)
            if frame is None:
                break
            number = frame.number(2)
            place = _at(self._places, frame.number(1))
            file = _at(self._files, place.number(1)) if place else None
            if place and file and is_user_code(file):
                function = _at(self._functions, place.number(2)) or ""
                return _frame(function, file, place.number(3) or 0)
        return _frame("", metadata.text(_FILE), metadata.number(_LINE) or 0)


def _at(items: list, number: int | None):
    """Return the item with this number, counted from 1; None if there is none."""
    return items[number - 1] if number and 0 < number <= len(items) else None


def _frame(function: str, file: str, line: int) -> Frame | None:
    if not file or not line or not is_user_code(file):
        return None
    return Frame(function.rpartition(".")[2], file, line, cell=is_cell(file))
