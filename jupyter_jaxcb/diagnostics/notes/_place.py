"""Find the user's expression that makes a bind."""

from __future__ import annotations

import ast
import functools
import linecache
import sys
from types import CodeType, FrameType, ModuleType
from typing import Any, NamedTuple

from ... import jax_compat
from ...stack.trace import is_user_code
from ._lines import target


class Place(NamedTuple):
    """An expression in the user's code."""

    file: str
    line: int
    function: str
    source: str  # the line, stripped
    expression: str  # the part of it that made the operation; the line if it is not known
    operands: tuple[str, ...]  # the expressions that it combines
    target: str = ""  # the variable that gets the whole result

    @property
    def is_call(self) -> bool:
        """Whether the first operand may be the module of a function: `jnp` in ``jnp.log(x)``."""
        return self.expression.endswith(")")


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
            return _without_module(place, frame.f_globals)
        if (
            jax_compat.runs_rules(frame)
            or jax_compat.traces_jit(code)
            or jax_compat.is_rule_or_lowering(code)
            or jax_compat.is_sparsifying(code)
        ):
            return None
        frame = frame.f_back
    return None


def _without_module(place: Place, names: dict[str, Any]) -> Place:
    """Return a place without the operand `jax.nn` that ``jax.nn.softmax(x)`` seems to have."""
    first, *others = place.operands or ("",)
    is_module = place.is_call and isinstance(names.get(first.partition(".")[0]), ModuleType)
    return place._replace(operands=tuple(others)) if is_module else place


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
    return Place(
        file, line, code.co_name, source, words, _operands(words),
        target(code, instruction),
    )  # fmt: skip


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
