"""What programs made of our binds, for recorders that come after they were compiled."""

from __future__ import annotations

import threading

from ...recording import OBSERVED, Outcome, Program, Recorder

MAX_PROGRAMS = 1_000  # whose outcomes are remembered; the oldest go first


class OutcomeMemory:
    """The outcomes of programs, and which of them are seen to run."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[Program, list[Outcome]] = {}
        self._counted: set[Program] = set()

    def compiled(self, program: Program, outcomes: list[Outcome]) -> None:
        with self._lock:
            self._outcomes[program] = outcomes
            while len(self._outcomes) > MAX_PROGRAMS:
                oldest = next(iter(self._outcomes))
                del self._outcomes[oldest]
                self._counted.discard(oldest)

    def counts(self, program: Program, counted: bool) -> None:
        with self._lock:
            (self._counted.add if counted else self._counted.discard)(program)

    def tell(self, recorder: Recorder, observed: bool) -> None:
        """Tells of our callbacks, or of those of JAX's own that were `observed`."""
        with self._lock:
            known = [
                told
                for outcomes in self._outcomes.values()
                for told in outcomes
                if told.site.flavor.startswith(OBSERVED) is observed
            ]
            counted = list(self._counted)
        for told in known:
            recorder.stands(told)
        for program in counted:
            recorder.counts(program)
