"""What became of some batch elements, on its way back."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

from ._results import dumps, stacked, unstacked

_OWN = os.path.dirname(os.path.abspath(__file__))


class ElementError(RuntimeError):
    """Stands for an exception of another process that cannot be pickled."""


class Worker(NamedTuple):
    """A worker."""

    host: str
    pid: int
    thread: int
    name: str


class ChunkOutcome:
    """What became of a chunk.

    Attributes:
        worker: outcome it.
        results: of the batch elements that are done.
        stamps: the worker's clock before the first element and after each, or at the ends alone.
        error: what the next batch element raised, if it did.
        trace: of that, where it came from another process.
        timed_out: the next element took too long, and goes on in a thread that nobody waits for.
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
        trace = self.trace or ("" if self.error is None else _trace_words(self.error))
        facts = self.worker, self.stamps, self.timed_out
        return _came_back, (facts, stacked(self.results), error, trace)


def _came_back(
    facts: tuple[Any, ...], results: Any, error: bytes | None, trace: str
) -> ChunkOutcome:
    outcome = ChunkOutcome(facts[0])
    _, outcome.stamps, outcome.timed_out = facts
    outcome.results, outcome.trace = unstacked(results), trace
    if error is not None:
        try:
            outcome.error = pickle.loads(error)
        except Exception as wrong:  # a class that this process does not have
            outcome.error = ElementError(f"{(trace or 'an exception').splitlines()[-1]} ({wrong})")
    return outcome


def _portable(error: BaseException) -> bytes:
    """`error` as bytes that can be read; another one in its place where there are none."""
    try:
        data = dumps(error)
        pickle.loads(data)
    except Exception:
        return pickle.dumps(ElementError(f"{type(error).__name__}: {_words(error)}"))
    return data


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"<its message raised {type(broken).__name__}>"


def _trace_words(error: BaseException) -> str:
    """The traceback, with those of its causes, without frames of this package."""
    told = traceback.TracebackException.from_exception(error)
    _leave_out_own(told)
    return "".join(told.format()).rstrip() if told.stack else ""


def _leave_out_own(told: traceback.TracebackException | None) -> None:
    if told is not None:
        told.stack[:] = [frame for frame in told.stack if not frame.filename.startswith(_OWN)]
        for other in (told.__cause__, told.__context__, *(told.exceptions or ())):
            _leave_out_own(other)
