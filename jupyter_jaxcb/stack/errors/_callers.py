"""Put the frames that led to a bind into the traceback of a failed host call.

When a compiled program calls, these frames have long returned. Only their names and lines are
known, so the traceback gets frames of a function that does nothing, under these names.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import Any

from ...recording import Frame, LoweredSite
from ..trace import function_of

_UNITS = 8  # of code that one entry of a line table covers
_NO_COLUMNS = 0b1_1101_000  # such an entry, see Objects/locations.md of CPython


def _suspended() -> Iterator[None]:
    """A generator, because its frame has no caller: that would keep a whole stack alive."""
    yield


def with_callers(tb: TracebackType | None, lowered: LoweredSite) -> TracebackType | None:
    """Return `tb`, the frames inside a host function, below those that led to its bind.

    In eager code the frames are still there, so nothing is added.
    """
    if lowered.program is None:
        return tb
    site = lowered.site
    name = function_of(site)
    own = [] if name is None else [Frame(name, site.file, site.line)]
    for frame in (*own, *(frame for frame in site.callers if not frame.library)):
        tb = TracebackType(tb, *_standing_for(frame.function, frame.file, frame.line))
    return tb


def is_added(frame: FrameType) -> bool:
    """Return whether `with_callers` has added `frame`."""
    return frame.f_globals is _GLOBALS


_GLOBALS: dict[str, Any] = {}


@functools.lru_cache(maxsize=1_000)
def _standing_for(function: str, file: str, line: int) -> tuple[FrameType, int, int]:
    """Return a frame with that name, its instruction and its line."""
    code = _suspended.__code__.replace(
        co_name=function, co_qualname=function, co_filename=file, co_firstlineno=line,
        co_linetable=_one_line(_suspended.__code__),
    )  # fmt: skip
    return types.FunctionType(code, _GLOBALS)().gi_frame, 0, line


def _one_line(code: CodeType) -> bytes:
    """Return a line table in which all of `code` is the first line, in no column."""
    units = len(code.co_code) // 2
    sizes = [_UNITS] * (units // _UNITS) + [units % _UNITS] * (units % _UNITS > 0)
    return b"".join(bytes([_NO_COLUMNS | size - 1, 0]) for size in sizes)
