"""The user's source: the expression that makes a bind, what a line assigns, and its loops."""

from __future__ import annotations

import ast
import dis
import functools
import linecache
import sys
from collections.abc import Iterator
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from ... import jax_compat
from ...stack.trace import is_user_code


class Place(NamedTuple):
    """An expression in the user's code."""

    file: str
    line: int
    function: str
    source: str  # the line, stripped
    expression: str  # the part of it that made the operation; the line if it is not known
    operands: tuple[str, ...] = ()  # the expressions that it combines
    target: str = ""  # the variable that gets the whole result

    @property
    def is_call(self) -> bool:
        """Whether the first operand may be the module of a function: `jnp` in ``jnp.log(x)``."""
        return self.expression.endswith(")")


class Loop(NamedTuple):
    """The lines of a ``for`` or ``while`` statement."""

    header: int
    last: int


def find_place() -> Place | None:
    """Return the user's expression that makes the bind of the caller's caller.

    None if a rule of JAX makes it, the lowering, or a jitted function of JAX or a library, whose
    trace may be used again on other lines: that function is one operation on the user's line.
    """
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        code = frame.f_code
        if is_user_code(code.co_filename):
            place = _place(code, code.co_filename, frame.f_lasti)
            # `jax.nn` in ``jax.nn.softmax(x)`` is no operand.
            first = place.operands[0].partition(".")[0] if place.operands else ""
            is_module = place.is_call and isinstance(frame.f_globals.get(first), ModuleType)
            return place._replace(operands=place.operands[1:]) if is_module else place
        if (
            jax_compat.runs_rules(frame)
            or jax_compat.traces_jit(code)
            or jax_compat.is_rule_or_lowering(code)
            or jax_compat.is_sparsifying(code)
        ):
            return None
        frame = frame.f_back
    return None


@functools.lru_cache(maxsize=4096)
def _place(code: CodeType, file: str, instruction: int) -> Place:
    first, last, start, end = list(code.co_positions())[instruction // 2]
    line = first or code.co_firstlineno
    source = linecache.getline(file, line).strip()
    expression = source
    if first is not None and last is not None and start is not None and end is not None:
        lines = [linecache.getline(file, n).encode() for n in range(first, last + 1)]
        if all(lines):
            lines[-1] = lines[-1][:end]
            lines[0] = lines[0][start:]
            expression = b"".join(lines).decode()
    words = " ".join(expression.split())
    operands, target = _operands(words), _target(code, instruction)
    return Place(file, line, code.co_name, source, words, operands, target)


def _operands(expression: str) -> tuple[str, ...]:
    """Return the expressions that `expression` combines: of ``x / s``, ``x`` and ``s``."""
    try:
        (statement,) = ast.parse(expression).body
    except (SyntaxError, ValueError):
        return ()
    parts: list[ast.expr] = []
    match statement:
        case ast.AugAssign(target=target, value=value):
            parts = [target, value]
        case ast.Expr(value=ast.BinOp(left=left, right=right)):
            parts = [left, right]
        case ast.Expr(value=ast.UnaryOp(operand=operand)):
            parts = [operand]
        case ast.Expr(value=ast.Call(func=function, args=arguments)):
            parts = [*([function.value] if isinstance(function, ast.Attribute) else []), *arguments]
    return tuple(ast.unparse(part) for part in parts)


def _target(code: CodeType, offset: int) -> str:
    """Return the variable that gets the result of an instruction; "" if it is used otherwise.

    A returned result counts as a variable, with the name of the function and ``()``.
    """
    # Until Python 3.13, a frame that calls a function of Python is in the cache of the instruction.
    instructions = [*dis.get_instructions(code)]
    until = [each for each in instructions if each.offset <= offset]
    after = instructions[len(until)] if len(until) < len(instructions) else None
    if after is None or until[-1].opname.startswith("UNPACK_"):  # of several variables
        return ""
    if after.opname == "RETURN_VALUE":
        return f"{code.co_name}()"
    return next(_stored(after), "")


@functools.lru_cache(maxsize=1024)
def stores(code: CodeType) -> dict[int, tuple[str, ...]]:
    """Return the names that each line assigns."""
    names: dict[int, dict[str, None]] = {}
    for instruction in dis.get_instructions(code):
        line = instruction.positions.lineno if instruction.positions else None
        if line is not None:
            names.setdefault(line, {}).update(dict.fromkeys(_stored(instruction)))
    return {line: tuple(stored) for line, stored in names.items()}


def _stored(instruction: dis.Instruction) -> Iterator[str]:
    """Return the variables; since Python 3.13 an instruction can load or store two."""
    opname, names = instruction.opname, instruction.argval
    if not opname.startswith("STORE_") or opname in ("STORE_ATTR", "STORE_SUBSCR", "STORE_SLICE"):
        return
    names = names if isinstance(names, tuple) else [names]
    yield from (name for name in names[: opname.count("STORE_")] if isinstance(name, str))


def loops(code: CodeType) -> tuple[Loop, ...]:
    """Return the loops of a function, the outermost first."""
    return _loops_of(code, code.co_filename)


@functools.lru_cache(maxsize=1024)  # equal code objects can be of several files
def _loops_of(code: CodeType, file: str) -> tuple[Loop, ...]:
    own = {line for _, _, line in code.co_lines()}
    lines = linecache.getlines(file)
    text = "".join("\n" if line.startswith("%%") else line for line in lines)
    return tuple(loop for loop in _loops_in(text) if loop.header in own)


@functools.lru_cache(maxsize=64)
def _loops_in(text: str) -> tuple[Loop, ...]:
    try:
        nodes = [*ast.walk(ast.parse(text))]
    except (SyntaxError, ValueError):
        return ()
    found: list[Any] = [n for n in nodes if isinstance(n, (ast.For, ast.While, ast.AsyncFor))]
    return tuple(sorted(Loop(n.lineno, n.end_lineno or n.lineno) for n in found))
