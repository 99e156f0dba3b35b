"""Remember the outcomes of compiled programs, for recorders that start later."""

from __future__ import annotations

import threading

from ...recording import OBSERVED, Outcome, Program, Recorder

MAX_PROGRAMS = 1_000  # the oldest are dropped first


class OutcomeMemory:
    """The outcomes of programs, and which programs have their runs counted."""

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

    def report(self, recorder: Recorder, observed: bool) -> None:
        """Report our callbacks to `recorder`, or if `observed` JAX's own callbacks."""
        with self._lock:
            known = [
                one
                for outcomes in self._outcomes.values()
                for one in outcomes
                if one.site.flavor.startswith(OBSERVED) is observed
            ]
            counted = list(self._counted)
        for one in known:
            recorder.stands(one)
        for program in counted:
            recorder.counts(program)
