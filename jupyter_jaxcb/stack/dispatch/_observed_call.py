"""Record the host calls of callbacks that were made with JAX's own API.

A program that is compiled while they are observed calls a `RecordedCall`. One that is compiled
while they are only noted calls a copy of the callback, by which `noted` finds the facts.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...recording import LoweredSite, Recorder, active
from ..core import Proxy, describe, is_observing


def listening() -> Recorder | None:
    """Return the recorder for calls of JAX's own callbacks, if any."""
    return active() if is_observing() else None


class CallCount:
    """Host calls started at one site; approximate if several threads call at once."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


class RecordedCall(Proxy):
    """A callback of JAX's own API in a compiled program; records every call under `fact`.

    Programs compiled during the observation keep it afterwards, when it records nothing.
    """

    __slots__ = ("count", "fact")

    def __init__(self, own: Callable[..., Any], fact: LoweredSite) -> None:
        super().__init__(own)
        self.fact = fact
        count = _counts.get(fact)  # shared by all calls of a loop that is not compiled
        self.count = _counts.setdefault(fact, CallCount()) if count is None else count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = listening()
        if recorder is None:
            return self.original(*args, **kwargs)
        # Other threads read these local variables while the call runs, see `_frames`.
        lowered, host = self.fact, self.count
        host.calls = number = host.calls + 1  # noqa: F841
        start = recorder.clock()
        try:
            returned = self.original(*args, **kwargs)
        except BaseException as error:
            recorder.called(lowered, 1, start, recorder.clock(), describe(error))
            raise
        end = recorder.clock()
        recorder.called(lowered, 1, start, end)
        return returned


_counts: weakref.WeakKeyDictionary[LoweredSite, CallCount] = weakref.WeakKeyDictionary()


# By id of the callback.
_notes: dict[int, tuple[weakref.ref[Any], LoweredSite | Callable[[], LoweredSite]]] = {}


def note_call_of(callback: Any, fact: Callable[[], LoweredSite]) -> None:
    """Remember, as long as `callback` lives, that only the site that `fact` returns calls it."""
    number = id(callback)
    _notes[number] = weakref.ref(callback, lambda _: _notes.pop(number, None)), fact


def noted(callback: Any) -> LoweredSite | None:
    """Return the site that calls `callback`; None if it was not noted."""
    number = id(callback)
    reference, fact = _notes.get(number, (None, None))
    if reference is None or reference() is not callback:
        return None
    if callable(fact):
        fact = fact()
        _notes[number] = reference, fact
    return fact
