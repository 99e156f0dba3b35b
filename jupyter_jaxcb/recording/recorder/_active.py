"""The process-wide slot that holds the recorder."""

from __future__ import annotations

from ._recorder import Recorder

_active: Recorder | None = None


def active() -> Recorder | None:
    """The recorder that host calls report to right now, if any.

    A process-wide slot, not a ``ContextVar``: XLA may call from a thread that never saw the
    notebook's context.
    """
    return _active


def activate(recorder: Recorder | None) -> Recorder | None:
    """Puts `recorder` into the slot and returns the one that was there."""
    global _active
    previous, _active = _active, recorder
    return previous
