"""A chunk on its way."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import os
import socket
import time
from collections.abc import Sequence

from jupyter_jaxcb_worker import Chunk, ChunkOutcome, Worker

from ._board import ElementMark, board, has_ended
from ._engine import Engine, WorkerLostError

_ENDING_SECONDS = 0.5  # that a process may take to end, once its files are closed


@dataclasses.dataclass(eq=False)
class SubmittedChunk:
    """A chunk that has been sent.

    Attributes:
        start: the first of its calls.
        stop: behind the last one.
        chunk: what was sent.
        sent_ns: when.
        received_ns: when it was back; 0: it is not.
        killed: its worker was ended by us, as it did not answer.
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
        """What its worker wrote on the board, if it has begun."""
        known = board() if self.chunk.board else None
        if known is None or self.chunk.board is None:
            return None
        mark = known.read(self.chunk.board)
        return mark if mark.chunk == self.chunk.number else None

    def worker_ended(self, error: BaseException, marks: bool) -> bool | None:
        """Whether the worker of this chunk is the one that ended; None: nobody knows.

        Args:
            error: of the chunk.
            marks: whether workers of its engine are known to write on the board.
        """
        mark = self.mark
        if mark is None:
            return False if marks else None
        # A pool breaks as a whole; others tell of a chunk that its worker is gone.
        return not isinstance(error, concurrent.futures.BrokenExecutor) or has_ended(mark.pid)

    def release(self) -> None:
        """It is over: its place on the board is free, and the future, which refers to it, too."""
        self.future = None
        known = board() if self.chunk.board else None
        if known is not None and self.chunk.board is not None:
            known.give_back(self.chunk.board)
            self.chunk.board = None


def await_end(flights: Sequence[SubmittedChunk]) -> None:
    """Waits for the end of a worker of one of `flights`, or a moment if it is none of these.

    A pool says that it is broken when a worker has closed its files, and is still to end.
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
    """What to tell where a worker ended.

    Args:
        flight: what it was to run.
        mark: what it wrote of that.
        engine: its.
        error: that says so.
        retries: that are allowed.
    """
    count = flight.stop - flight.start
    where = "in the middle of this batch element"
    if mark is None and count > 1:
        where = f"in the middle of one of {count} batch elements, of which this is the first"
    last = getattr(error, "last_worker", None)  # dask's
    worker = f"pid {mark.pid}" if mark else getattr(last, "address", "") or "one of several"
    words = [f"a worker of {engine.word} ended ({worker}) {where}."]
    if engine.make is None and isinstance(error, concurrent.futures.BrokenExecutor):
        words.append("The executor is broken now: make another one.")
    elif not retries:
        words.append("Pass retries=1 to have such a batch element called again, in another worker.")
    return WorkerLostError(" ".join(words))


def lost_ran(
    flight: SubmittedChunk, mark: ElementMark | None, error: BaseException
) -> ChunkOutcome:
    """What a recording has of a batch element whose worker ended: it began, and that is all."""
    outcome = ChunkOutcome(
        Worker(socket.gethostname(), mark.pid if mark else os.getpid(), 0, "a worker that ended")
    )
    outcome.error = error
    began = max(mark.since_ns, flight.sent_ns) if mark else flight.sent_ns
    outcome.stamps = [began, max(began, flight.received_ns)]
    return outcome
