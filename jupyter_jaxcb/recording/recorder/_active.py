"""The process-wide slot that holds the recorder."""

from __future__ import annotations

from ._recorder import Backlog, NativeLog, Recorder, backlogs, native_logs

_active: Recorder | None = None


def active() -> Recorder | None:
    """Return the recorder that host calls report to, if any.

    A process-wide slot, not a ``ContextVar``: XLA may call from a thread that never saw the
    notebook's context.
    """
    return _active


def activate(recorder: Recorder | None) -> Recorder | None:
    """Put `recorder` into the slot and return the previous one."""
    global _active
    for log in native_logs:
        log.switch(recorder)
    if recorder is not None:
        recorder.forget_plain()
    previous, _active = _active, recorder
    return previous


def add_native_log(log: NativeLog) -> None:
    """Let recorders read a log that code without Python writes."""
    native_logs.append(log)
    log.switch(_active)


def add_backlog(backlog: Backlog) -> None:
    """Let recordings count the host calls that are to be made later."""
    backlogs[:] = [backlog]
