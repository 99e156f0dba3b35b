"""Reduce tracebacks to the frames that matter to the user, and add those that led to a bind.

When a compiled program calls, the frames that led to the bind have long returned. Only their code
and lines are known, so the traceback gets frames of functions that do nothing, with the same name,
first line and current line. Whatever prints them (Python, pytest, IPython) finds the same source as
for the frames that returned.
"""

from __future__ import annotations

import ast
import functools
import itertools
import types
from types import CodeType, FrameType, TracebackType
from typing import Any

from ...recording import LoweredSite
from ..trace import code_at, is_machinery, is_ours, is_user_code


def with_callers(tb: TracebackType | None, lowered: LoweredSite) -> TracebackType | None:
    """Return `tb`, the frames inside a host function, below those that led to its bind.

    In eager code the frames are still there, so nothing is added.
    """
    if lowered.program is None:
        return tb
    site = lowered.site
    for place in (site, *(frame for frame in site.callers if not frame.library)):
        code = code_at(place)
        if code is not None:
            first = min(code.co_firstlineno, place.line)
            frame = _suspended(code.co_name, code.co_qualname, place.file, first, place.line)
            tb = TracebackType(tb, frame, frame.f_lasti, place.line)
    return tb


def is_added(frame: FrameType) -> bool:
    """Return whether `with_callers` has added `frame`."""
    return _ADDED in frame.f_globals


_ADDED = "__jaxcb_suspended__"


@functools.lru_cache(maxsize=1_000)
def _suspended(name: str, qualname: str, file: str, first: int, line: int) -> FrameType:
    """Return a frame at `line` of a function that begins at line `first`.

    It is the frame of a suspended generator: that has no caller, which would keep a stack alive.
    """
    tree = ast.parse("def function(): yield")
    function: Any = tree.body[0]
    node: Any
    for node in ast.walk(function):
        node.lineno = node.end_lineno = line
        node.col_offset = node.end_col_offset = -1  # Python marks no part of the line
    function.lineno = first
    (code,) = (c for c in compile(tree, file, "exec").co_consts if isinstance(c, CodeType))
    scope: dict[str, Any] = {}
    generator = types.FunctionType(code.replace(co_name=name, co_qualname=qualname), scope)()
    next(generator)
    scope[_ADDED] = generator  # it would end without a reference, and its frame be at another line
    return generator.gi_frame


def own_frames(tb: TracebackType | None) -> TracebackType | None:
    """Return `tb` without the frames of JAX and of this package, and those that it has added."""
    return _joined(
        [e for e in _entries(tb) if not (is_machinery(_file(e)) or is_added(e.tb_frame))], None
    )


def refused_frames(tb: TracebackType | None) -> TracebackType | None:
    """Return the traceback of an error we raise on purpose, ending at the user's code.

    Needed because IPython shows the last frame even if it has ``__tracebackhide__``. An unexpected
    error, raised in a frame of this package without ``__tracebackhide__`` or in JAX, keeps all of
    its frames.
    """
    entries = _entries(tb)
    meant = [e for e in entries[-1:] if "__tracebackhide__" in e.tb_frame.f_locals]
    if not meant or not is_ours(_file(meant[0])):
        return tb
    while entries and is_machinery(_file(entries[-1])):
        entries.pop()
    return _joined([one for one in entries if not is_ours(_file(one))], None) or tb


def user_frames(tb: TracebackType | None, own: TracebackType | None) -> TracebackType | None:
    """Return the user's frames that led to a host call, followed by the frames inside it.

    Args:
        tb: the traceback of the error that was raised; only its user frames are kept.
        own: the traceback of the host function's exception, see `own_frames`. `tb` may end with it.
    """
    lead = []
    for one in _entries(tb):
        if own is not None and one.tb_frame is own.tb_frame:
            break
        again = (
            lead and lead[-1].tb_frame is one.tb_frame
        )  # tracing duplicates frames on Python 3.11.2
        if is_user_code(_file(one)) and not again:
            lead.append(one)
    return _joined(lead, _without_frames_of(lead, own))


def _without_frames_of(
    lead: list[TracebackType], own: TracebackType | None
) -> TracebackType | None:
    """Return `own` without the added frames at which `lead` ends: those of a loop that is running.

    JAX compiles a loop in eager code, and calls it while the frames around it are there.
    """
    entries = _entries(own)
    added = [_place(one) for one in itertools.takewhile(lambda e: is_added(e.tb_frame), entries)]
    places = [_place(one) for one in lead]
    counts = range(min(len(places), len(added)), 0, -1)
    again = next((n for n in counts if places[-n:] == added[:n]), 0)
    return _joined(entries[again:], None)


def _place(tb: TracebackType) -> tuple[str, str, int]:
    return _file(tb), tb.tb_frame.f_code.co_name, tb.tb_lineno


def _entries(tb: TracebackType | None) -> list[TracebackType]:
    entries = []
    while tb is not None:
        entries.append(tb)
        tb = tb.tb_next
    return entries


def _file(tb: TracebackType) -> str:
    return tb.tb_frame.f_code.co_filename


def _joined(entries: list[TracebackType], after: TracebackType | None) -> TracebackType | None:
    for one in reversed(entries):
        after = TracebackType(after, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return after
