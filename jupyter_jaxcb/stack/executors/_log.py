"""Record the host calls that workers of an executor made."""

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
    """Records the calls of one crossing when it ends, and late chunks as they come back."""

    recorder: Recorder | None
    lowered: LoweredSite
    host: HostFunction
    order: np.ndarray  # batch element of each call

    def __post_init__(self) -> None:
        self._version = self.host.version
        self._chunks: list[tuple[SubmittedChunk, ChunkOutcome]] = []
        self._crossing: int | None = None
        self._lock = threading.Lock()
        if self.recorder is not None and self.host.replaced:
            self.recorder.stale(self.lowered)

    def record(self, flight: SubmittedChunk, outcome: ChunkOutcome) -> None:
        """Add a chunk that came back; record it at once if the crossing has ended."""
        if self.recorder is None:
            return
        with self._lock:
            self._chunks.append((flight, outcome))
            late = self._crossing is not None
        if late:
            self._record_chunks(self._take_chunks(), {})

    def end(self, failed: int | None = None, error: BaseException | None = None) -> int:
        """Record the crossing and return its number; `error` belongs to the call `failed`."""
        if self.recorder is None:
            return -1
        self._crossing = self.recorder.crossing()
        words = {} if failed is None or error is None else {failed: describe(error)}
        self._record_chunks(self._take_chunks(), words)
        return self._crossing

    def _take_chunks(self) -> list[tuple[SubmittedChunk, ChunkOutcome]]:
        with self._lock:
            chunks, self._chunks = self._chunks, []
        return sorted(chunks, key=lambda pair: pair[0].start)

    def _record_chunks(
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
