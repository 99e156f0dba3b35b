"""A callback of JAX's own, as a program calls it while it is observed."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from ...recording import LoweredSite, Recorder, active
from ..core import Proxy, describe, is_observing


def listening() -> Recorder | None:
    """Who hears of calls of JAX's own callbacks, if anyone."""
    return active() if is_observing() else None


class CallCount:
    """Host calls begun at one site; threads that count at once may lose one."""

    __slots__ = ("calls",)

    def __init__(self) -> None:
        self.calls = 0


class RecordedCall(Proxy):
    """A callback of JAX's own, as a program calls it: every call is recorded under `fact`.

    It goes on in programs that were compiled meanwhile, and records nothing then.
    """

    __slots__ = ("count", "fact")

    def __init__(self, own: Callable[..., Any], fact: LoweredSite) -> None:
        super().__init__(own)
        self.fact = fact
        count = _counts.get(fact)  # one for all calls of a loop that is not compiled
        self.count = _counts.setdefault(fact, CallCount()) if count is None else count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = listening()
        if recorder is None:
            return self.original(*args, **kwargs)
        # These names are read from outside while the call is running, see `_running`.
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
