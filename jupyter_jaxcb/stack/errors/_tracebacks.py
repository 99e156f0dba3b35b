"""Tracebacks with the frames that say something to the user, and no others."""

from __future__ import annotations

from types import TracebackType

from ..core import is_machinery, is_ours, is_user_code


def own_frames(tb: TracebackType | None) -> TracebackType | None:
    """`tb` without the frames of JAX and of this package."""
    return _joined([one for one in _entries(tb) if not is_machinery(_file(one))], None)


def refused_frames(tb: TracebackType | None) -> TracebackType | None:
    """`tb` up to the user's code that we refuse something to, without frames of ours.

    IPython shows the last frame even if it asks to be hidden. An error that we did not mean to
    raise, in a frame of ours that does not ask for that, keeps all of its frames, as do JAX's own.
    """
    entries = _entries(tb)
    meant = [e for e in entries[-1:] if "__tracebackhide__" in e.tb_frame.f_locals]
    if not meant or not is_ours(_file(meant[0])):
        return tb
    while entries and is_machinery(_file(entries[-1])):
        entries.pop()
    return _joined([one for one in entries if not is_ours(_file(one))], None) or tb


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
