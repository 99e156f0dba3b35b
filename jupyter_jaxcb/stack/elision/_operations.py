"""Find the line of user code, and the callback, of each operation in an optimized program."""

from __future__ import annotations

import re
from typing import NamedTuple

from ...recording import Frame
from ..core import is_cell, is_user_code
from ._hlo import host_call_index
from ._protobuf import Span, fields

# Field numbers of XLA's hlo.proto.
_COMPUTATIONS, _ID, _FRAMES = 3, 5, 17  # of HloModuleProto
_INSTRUCTIONS = 2  # of HloComputationProto
_NAME, _OPCODE, _METADATA, _TARGET, _CONFIG = 1, 2, 7, 28, 43  # of HloInstructionProto
_OP_NAME, _FILE, _LINE, _FRAME = 2, 3, 4, 15  # of OpMetadata
_FILES, _FUNCTIONS, _PLACES, _STACK = 1, 2, 3, 4  # of StackFrameIndexProto
_NUMBERED = re.compile(r"(?:\.\d+)+$")


class Operation(NamedTuple):
    """An operation of a program, as a profile names it."""

    name: str  # JAX's primitive, "dot_general", or else XLA's opcode
    place: Frame | None  # the innermost line of user code; None: unknown
    host_call: int | None = None  # its index among the program's host callbacks; None: none


def without_number(name: str) -> str:
    """Return the name of an instruction without what tells it apart, "copy" of "copy.2"."""
    return _NUMBERED.sub("", name)


def program_number(module: bytes) -> int:
    """Return XLA's number of an optimized module, as its profiler has it.

    Args:
        module: a serialized `HloModuleProto`.

    Raises:
        ValueError: if the module does not have the expected structure.
    """
    for field, value in fields(module, Span(0, len(module))):
        if field == _ID and isinstance(value, int):
            return value
    return 0


def operations(module: bytes, wanted: set[str]) -> dict[str, Operation]:
    """Return the operations of an optimized module whose names are `wanted`.

    Args:
        module: a serialized `HloModuleProto`.
        wanted: names of instructions, "dot_general.3".

    Raises:
        ValueError: if the module does not have the expected structure.
    """
    return _Module(module).operations(wanted)


class _Module:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._files: list[str] = []
        self._functions: list[str] = []
        self._places: list[dict[int, int]] = []
        self._stack: list[dict[int, int]] = []

    def operations(self, wanted: set[str]) -> dict[str, Operation]:
        computations = []
        for field, value in fields(self._data, Span(0, len(self._data))):
            if field == _COMPUTATIONS and isinstance(value, Span):
                computations.append(value)
            elif field == _FRAMES and isinstance(value, Span):
                self._read_frames(value)
        found = {}
        for computation in computations:
            for field, value in fields(self._data, computation):
                if field == _INSTRUCTIONS and isinstance(value, Span):
                    name = self._name(value)
                    if name in wanted:
                        found[name] = self._operation(name, value)
        return found

    def _read_frames(self, span: Span) -> None:
        for field, value in fields(self._data, span):
            if not isinstance(value, Span):
                continue
            if field in (_FILES, _FUNCTIONS):
                (self._files if field == _FILES else self._functions).append(self._text(value))
            elif field in (_PLACES, _STACK):
                (self._places if field == _PLACES else self._stack).append(self._numbers(value))

    def _name(self, instruction: Span) -> str:
        """Return the name of an instruction, its first field."""
        for field, value in fields(self._data, instruction):
            if field == _NAME and isinstance(value, Span):
                return self._text(value)
        return ""

    def _operation(self, name: str, instruction: Span) -> Operation:
        values = dict.fromkeys((_OPCODE, _METADATA, _TARGET, _CONFIG), Span(0, 0))
        for field, value in fields(self._data, instruction):
            if field in values and isinstance(value, Span):
                values[field] = value
        op_name, place = self._metadata(values[_METADATA])
        target, config = (self._data[slice(*values[one])] for one in (_TARGET, _CONFIG))
        opcode = self._text(values[_OPCODE])
        # Without metadata, "copy_fusion.2" says more than its opcode, "fusion".
        short = op_name.rpartition("/")[2] if "/" in op_name else without_number(name)
        named = short if opcode not in ("while", "conditional") else opcode
        return Operation(named or opcode, place, host_call_index(target, config))

    def _metadata(self, span: Span) -> tuple[str, Frame | None]:
        op_name = file = ""
        line = frame = 0
        for field, value in fields(self._data, span):
            if isinstance(value, Span):
                op_name = self._text(value) if field == _OP_NAME else op_name
                file = self._text(value) if field == _FILE else file
            else:
                line = value if field == _LINE else line
                frame = value if field == _FRAME else frame
        return op_name, self._user_frame(frame) or _frame("", file, line)

    def _user_frame(self, number: int) -> Frame | None:
        """Return the innermost frame of user code, from frame `number` (counted from 1) up."""
        for _ in range(len(self._stack)):
            if not 0 < number <= len(self._stack):
                return None
            frame = self._stack[number - 1]
            place = _at(self._places, frame.get(1, 0)) or {}
            file = _at(self._files, place.get(1, 0)) or ""
            if is_user_code(file):
                return _frame(_at(self._functions, place.get(2, 0)) or "", file, place.get(3, 0))
            number = frame.get(2, 0)
        return None

    def _numbers(self, span: Span) -> dict[int, int]:
        return {k: v for k, v in fields(self._data, span) if isinstance(v, int)}

    def _text(self, span: Span) -> str:
        return self._data[span.start : span.end].decode(errors="replace")


def _at(items: list, number: int):
    """Return the item with this number, counted from 1; None if there is none."""
    return items[number - 1] if 0 < number <= len(items) else None


def _frame(function: str, file: str, line: int) -> Frame | None:
    if not file or not line or not is_user_code(file):
        return None
    return Frame(function.rpartition(".")[2], file, line, cell=is_cell(file))
