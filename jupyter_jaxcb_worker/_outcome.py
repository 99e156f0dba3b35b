"""The outcome of a chunk: results, times and the exception, in a form that can be sent back."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._results import dumps, stacked, unstacked

_OWN = os.path.dirname(os.path.abspath(__file__))


class ElementError(RuntimeError):
    """Replaces an exception of another process that cannot be pickled."""


class Worker(NamedTuple):
    """A worker: its machine, process and thread."""

    host: str
    pid: int
    thread: int
    name: str


class ChunkOutcome:
    """The outcome of a chunk.

    Attributes:
        worker: the worker that ran it.
        results: the results of the batch elements that returned.
        stamps: the worker's clock, in nanoseconds, before the first batch element and after each;
            only the first and the last of these if elements are not timed.
        error: the exception of the next batch element, if any.
        trace: the formatted traceback of that exception, if it comes from another process.
        timed_out: whether the next element timed out; its thread was abandoned.
    """

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.results: Sequence[Any] = []
        self.stamps: list[int] = []
        self.error: BaseException | None = None
        self.trace = ""
        self.timed_out = False

    def __reduce__(self) -> Any:
        error = None if self.error is None else _portable(self.error)
        trace = self.trace or ("" if self.error is None else _format_trace(self.error))
        facts = self.worker, self.stamps, self.timed_out
        return _received, (facts, stacked(self.results), error, trace)


def _received(
    facts: tuple[Any, ...], results: Any, error: bytes | None, trace: str
) -> ChunkOutcome:
    outcome = ChunkOutcome(facts[0])
    _, outcome.stamps, outcome.timed_out = facts
    outcome.results, outcome.trace = unstacked(results), trace
    if error is not None:
        try:
            outcome.error = pickle.loads(error)
        except Exception as wrong:  # its class does not exist in this process
            outcome.error = ElementError(f"{(trace or 'an exception').splitlines()[-1]} ({wrong})")
    return outcome


def _portable(error: BaseException) -> bytes:
    """Pickle `error`, or an `ElementError` with its text if that does not work."""
    try:
        data = dumps(error)
        pickle.loads(data)
    except Exception:
        return pickle.dumps(ElementError(f"{type(error).__name__}: {_message(error)}"))
    return data


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"<its message raised {type(broken).__name__}>"


def _format_trace(error: BaseException) -> str:
    """Format the traceback of `error` and its causes, without frames of this package."""
    trace = traceback.TracebackException.from_exception(error)
    _drop_own_frames(trace)
    return "".join(trace.format()).rstrip() if trace.stack else ""


def _drop_own_frames(trace: traceback.TracebackException | None) -> None:
    if trace is not None:
        trace.stack[:] = [frame for frame in trace.stack if not frame.filename.startswith(_OWN)]
        for other in (trace.__cause__, trace.__context__, *(trace.exceptions or ())):
            _drop_own_frames(other)
