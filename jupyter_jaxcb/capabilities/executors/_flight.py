"""Chunks of batch elements that are sent to workers, and the rows of those that came back."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import socket
import time
from collections.abc import Sequence

import numpy as np

from jupyter_jaxcb_worker import Chunk, ChunkOutcome, Worker

from ...recording import LoweredSite, Recorder, WorkerRows
from ...stack.call import HostFunction
from ...stack.errors import describe
from ._board import ElementMark, board, has_ended
from ._engine import Engine, WorkerLostError

_ENDING_SECONDS = 0.5  # time a process gets to end after its files are closed


@dataclasses.dataclass(eq=False)
class SubmittedChunk:
    """A chunk that was submitted.

    Attributes:
        start: the first of its calls.
        stop: one past the last of its calls.
        chunk: the chunk that was sent.
        sent_ns: when it was sent.
        received_ns: when it came back; 0 if it has not.
        killed: whether we killed its worker, which did not respond.
    """

    start: int
    stop: int
    chunk: Chunk
    sent_ns: int
    received_ns: int = 0
    killed: bool = False
    future: concurrent.futures.Future | None = None

    @property
    def mark(self) -> ElementMark | None:
        """What its worker wrote on the board; None if it has not started."""
        known = board() if self.chunk.board else None
        if known is None or self.chunk.board is None:
            return None
        mark = known.read(self.chunk.board)
        return mark if mark.chunk == self.chunk.number else None

    def worker_ended(self, error: BaseException, marks: bool) -> bool | None:
        """Return whether the worker of this chunk is the one that died; None if unknown.

        Args:
            error: the error of the chunk's future.
            marks: whether workers of its engine are known to write on the board.
        """
        mark = self.mark
        if mark is None:
            return False if marks else None
        # A pool breaks as a whole; other executors report the lost worker of a single chunk.
        return not isinstance(error, concurrent.futures.BrokenExecutor) or has_ended(mark.pid)

    def release(self) -> None:
        """Free its place on the board, and drop the future, which refers back to it."""
        self.future = None
        known = board() if self.chunk.board else None
        if known is not None and self.chunk.board is not None:
            known.give_back(self.chunk.board)
            self.chunk.board = None


def await_end(flights: Sequence[SubmittedChunk]) -> None:
    """Wait until a worker of one of `flights` has ended, at most `_ENDING_SECONDS`.

    A pool reports that it is broken when a worker has closed its files but may not have ended yet.
    """
    pids = {mark.pid for mark in (flight.mark for flight in flights) if mark is not None}
    until = time.monotonic() + _ENDING_SECONDS
    while pids and not any(map(has_ended, pids)) and time.monotonic() < until:
        time.sleep(0.002)


def lost_error(
    flight: SubmittedChunk,
    mark: ElementMark | None,
    engine: Engine,
    error: BaseException,
    retries: int,
) -> WorkerLostError:
    """Return the error to raise when a worker died.

    Args:
        flight: the chunk it was running.
        mark: what it wrote on the board, if anything.
        engine: its engine.
        error: the error of the chunk's future.
        retries: how many retries the user allows.
    """
    count = flight.stop - flight.start
    where = "while running this batch element"
    if mark is None and count > 1:
        where = f"while running one of {count} batch elements starting with this one"
    last = getattr(error, "last_worker", None)  # set by dask
    worker = f"pid {mark.pid}" if mark else getattr(last, "address", "") or "one of several"
    words = [f"a worker of {engine.word} died ({worker}) {where}."]
    if engine.make is None and isinstance(error, concurrent.futures.BrokenExecutor):
        words.append("The executor is broken: replace it with a new one.")
    elif not retries:
        words.append("Pass retries=1 to run such a batch element again in another worker.")
    return WorkerLostError(" ".join(words))


def lost_outcome(
    flight: SubmittedChunk, mark: ElementMark | None, error: BaseException
) -> ChunkOutcome:
    """Return the outcome to record for a batch element whose worker died: only when it started."""
    outcome = ChunkOutcome(
        Worker(socket.gethostname(), mark.pid if mark else os.getpid(), 0, "a worker that died")
    )
    outcome.error = error
    began = max(mark.since_ns, flight.sent_ns) if mark else flight.sent_ns
    outcome.stamps = [began, max(began, flight.received_ns)]
    return outcome


@dataclasses.dataclass(eq=False)
class Log:
    """Records the calls of one crossing as its chunks come back, also after the crossing ended."""

    recorder: Recorder | None
    lowered: LoweredSite
    host: HostFunction
    order: np.ndarray  # batch element of each call

    def __post_init__(self) -> None:
        self._version = self.host.version
        self._returned: list[tuple[int, int]] = []  # calls that returned, as (start, stop)
        self._crossing = -1 if self.recorder is None else self.recorder.crossing()
        if self.recorder is not None and self.host.replaced:
            self.recorder.stale(self.lowered)

    def record(self, flight: SubmittedChunk, outcome: ChunkOutcome) -> None:
        """Record the calls of a chunk that came back."""
        made = len(outcome.stamps) - 1
        if self.recorder is None or made < 1:
            return
        start, failed = flight.start, outcome.error is not None
        part = WorkerRows(
            outcome.worker,
            self.order[start : start + made],
            outcome.stamps,
            flight.sent_ns,
            flight.received_ns,
        )
        rows = self.recorder.worker_rows(part)
        rows["lowered"], rows["crossing"] = self.recorder.numbers[self.lowered], self._crossing
        rows["version"] = self._version
        if outcome.error is not None:
            rows["error"][len(outcome.results)] = self.recorder.error(describe(outcome.error))
        self.recorder.called(rows.tobytes(), first=not self._returned)
        # Last: after an interrupt before this line, `end` must find no call without a row.
        self._returned.append((start, start + made - failed))

    def end(self, failed: int | None = None, error: BaseException | None = None) -> int:
        """Return the number of the crossing; `error` belongs to the call `failed`."""
        if self.recorder is not None and failed is not None and error is not None:
            if any(start <= failed < stop for start, stop in self._returned):
                element = int(self.order[failed])
                self.recorder.refused(self.lowered, self._crossing, element, describe(error))
        return self._crossing
