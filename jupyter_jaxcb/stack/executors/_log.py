"""What a recorder hears of host calls that workers of an executor made."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator, Sequence

import numpy as np

from jupyter_jaxcb_worker import ChunkOutcome

from ...recording import LoweredSite, Recorder, WorkerRows
from ..core import HostFunction, describe
from ._flight import SubmittedChunk


@dataclasses.dataclass(eq=False)
class Log:
    """What a recorder hears of the calls of one crossing, when all that are known are known.

    Chunks that come back later are told then.
    """

    recorder: Recorder | None
    lowered: LoweredSite
    host: HostFunction
    order: np.ndarray  # the batch element of each call

    def __post_init__(self) -> None:
        self._version = self.host.version
        self._chunks: list[tuple[SubmittedChunk, ChunkOutcome]] = []
        self._crossing: int | None = None
        self._lock = threading.Lock()
        if self.recorder is not None and self.host.replaced:
            self.recorder.stale(self.lowered)

    def record(self, flight: SubmittedChunk, outcome: ChunkOutcome) -> None:
        """A chunk came back."""
        if self.recorder is None:
            return
        with self._lock:
            self._chunks.append((flight, outcome))
            late = self._crossing is not None
        if late:
            self._tell(self._taken(), {})

    def end(self, failed: int | None = None, error: BaseException | None = None) -> int:
        """The number of the crossing; `failed` is the call whose answer, or error, was `error`."""
        if self.recorder is None:
            return -1
        self._crossing = self.recorder.crossing()
        words = {} if failed is None or error is None else {failed: describe(error)}
        self._tell(self._taken(), words)
        return self._crossing

    def _taken(self) -> list[tuple[SubmittedChunk, ChunkOutcome]]:
        with self._lock:
            chunks, self._chunks = self._chunks, []
        return sorted(chunks, key=lambda pair: pair[0].start)

    def _tell(
        self, chunks: Sequence[tuple[SubmittedChunk, ChunkOutcome]], words: dict[int, str]
    ) -> None:
        if self.recorder is None or not chunks:
            return
        self.recorder.called_by_workers(
            self.lowered, self._version, self._crossing or 0, list(self._rows(chunks, words))
        )

    def _rows(
        self, chunks: Sequence[tuple[SubmittedChunk, ChunkOutcome]], words: dict[int, str]
    ) -> Iterator[WorkerRows]:
        for flight, outcome in chunks:
            made = len(outcome.stamps) - 1
            if made < 1:
                continue
            calls = range(flight.start, flight.start + made)
            errors = {n: word for n, word in words.items() if n in calls}
            if outcome.error is not None:
                errors[flight.start + len(outcome.results)] = describe(outcome.error)
            yield WorkerRows(
                outcome.worker,
                self.order[flight.start : flight.start + made],
                outcome.stamps,
                flight.sent_ns,
                flight.received_ns,
                {n - flight.start: word for n, word in errors.items()},
            )
