"""Find the variable that a lambda is registered under: ``f = jaxcb.pure(lambda x: 2 * x)``."""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from types import CodeType, FrameType, FunctionType
from typing import Any

from ._code_owner import is_machinery, is_ours
from ._site import position


def assigned_name(function: Any) -> str:
    """Return the variable that gets what the running call of this package by the user returns.

    Returns:
        The name, if that call is the whole right side of an assignment to one variable, and has the
        lambda `function` as its first argument. Otherwise, and without source, it is empty: a
        wrapper or a list of callbacks would give several lambdas one name, which is not theirs.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None or type(function) is not FunctionType:
        return ""
    code = frame.f_code
    is_written_here = any(part is function.__code__ for part in code.co_consts)
    if not is_written_here or is_machinery(code.co_filename):  # such as `jax.tree.map`
        return ""
    name = _stored(code, frame.f_lasti)
    return name if name and _has_lambda_first(code, frame.f_lasti) else ""


def _stored(code: CodeType, offset: int) -> str:
    """Return the variable that the instruction behind the one at `offset` sets; empty: none.

    Not with `dis.get_instructions`, which decodes the whole module for each of its lambdas.
    """
    instructions, place, argument = code.co_code, offset + 2, 0
    while (name := dis.opname[instructions[place]]) in ("CACHE", "EXTENDED_ARG"):
        argument = (argument | instructions[place + 1]) << 8
        place += 2
    argument |= instructions[place + 1]
    if name in ("STORE_NAME", "STORE_GLOBAL"):
        return code.co_names[argument]
    if name == "STORE_FAST_LOAD_FAST":  # two in one
        return code.co_varnames[argument >> 4]
    cells = (one for one in code.co_cellvars if one not in code.co_varnames)
    variables = (*code.co_varnames, *cells, *code.co_freevars)
    return variables[argument] if name in ("STORE_FAST", "STORE_DEREF") else ""


def _has_lambda_first(code: CodeType, offset: int) -> bool:
    """Return whether the source of the call at `offset` begins its arguments with a lambda."""
    line, last, start, end = position(code, offset)
    if line is None or last is None or start is None or end is None:
        return False
    lines = [one.encode() for one in linecache.getlines(code.co_filename)[line - 1 : last]]
    if len(lines) != last - line + 1:
        return False
    lines[-1] = lines[-1][:end]  # first, since it may be the only one
    lines[0] = lines[0][start:]
    try:
        call = ast.parse(b"".join(lines).strip(), mode="eval").body
    except (SyntaxError, ValueError):  # the source is not that of the code any more
        return False
    return isinstance(call, ast.Call) and isinstance((*call.args, None)[0], ast.Lambda)
