"""Tracebacks with the frames that say something to the user, and no others."""

from __future__ import annotations

from types import TracebackType

from ._site import is_machinery, is_user_code


def own_frames(tb: TracebackType | None) -> TracebackType | None:
    """`tb` without the frames of JAX and of this package."""
    return _joined([one for one in _entries(tb) if not is_machinery(_file(one))], None)


def user_frames(tb: TracebackType | None, own: TracebackType | None) -> TracebackType | None:
    """What led to a host call, then all of what happened in it.

    Args:
        tb: of what was raised; of it the frames of the user's code count.
        own: of the host function's exception, see `own_frames`; `tb` may end with it.
    """
    lead = []
    for one in _entries(tb):
        if own is not None and one.tb_frame is own.tb_frame:
            break
        again = lead and lead[-1].tb_frame is one.tb_frame  # as tracing leaves it on Python 3.11.2
        if is_user_code(_file(one)) and not again:
            lead.append(one)
    return _joined(lead, own)


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
