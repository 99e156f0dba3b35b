"""The call site of the binds that a derivative rule makes."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from ._site import Frames


class _Rules(threading.local):
    """The call that this thread differentiates by a rule of ours."""

    frames: Frames | None = None


_rules = _Rules()


@contextlib.contextmanager
def bound_where(frames: Frames) -> Iterator[None]:
    """Make binds of this thread at a call site.

    A rule may run later than the call that it differentiates: JAX traces a `jax.checkpoint` first,
    and differentiates what it traced.

    Args:
        frames: the code that made that call.
    """
    before, _rules.frames = _rules.frames, frames
    try:
        yield
    finally:
        _rules.frames = before


def frames_of_rule() -> Frames | None:
    """Return the code that called what a rule of ours differentiates; None outside of rules."""
    return _rules.frames
