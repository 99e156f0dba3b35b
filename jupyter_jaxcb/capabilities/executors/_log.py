"""Record the host calls that workers of an executor made."""

from __future__ import annotations

import dataclasses

import numpy as np

from jupyter_jaxcb_worker import ChunkOutcome

from ...recording import LoweredSite, Recorder, WorkerRows
from ...stack.call import HostFunction
from ...stack.errors import describe
from ._flight import SubmittedChunk


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
