"""The process-wide slot that holds the recorder."""

from __future__ import annotations

from ._recorder import Recorder

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
    previous, _active = _active, recorder
    return previous
