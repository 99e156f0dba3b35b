"""Remember the outcomes of compiled programs, for recorders that start later."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Collection
from typing import Any

from ...recording import OBSERVED, Outcome, Program, Recorder

MAX_PROGRAMS = 1_000  # the oldest are dropped first

FindOutcomes = Callable[[Any], list[Outcome]]  # given the executable


class OutcomeMemory:
    """The outcomes of programs, and which programs have their runs counted."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._outcomes: dict[Program, list[Outcome]] = {}
        self._counted: set[Program] = set()
        # Programs with callbacks of JAX's own API that were not observed yet, while they exist.
        self._noted: dict[Program, tuple[weakref.ref[Any], FindOutcomes]] = {}

    def add_outcomes(self, program: Program, outcomes: list[Outcome]) -> None:
        with self._lock:
            self._outcomes[program] = [*self._outcomes.get(program, ()), *outcomes]
            while len(self._outcomes) > MAX_PROGRAMS:
                oldest = next(iter(self._outcomes))
                del self._outcomes[oldest]
                self._counted.discard(oldest)

    def note(self, executable: Any, program: Program, find: FindOutcomes) -> None:
        """Remember how to find the outcomes of a program, until `executable` dies."""

        def forget(_: Any) -> None:  # without the lock: this thread may hold it
            if self._noted.pop(program, None) is not None and program not in self._outcomes:
                self._counted.discard(program)

        self._noted[program] = weakref.ref(executable, forget), find

    def is_noted(self, program: Program) -> bool:
        """Whether the program was never observed, and has only callbacks of JAX's own API."""
        return program in self._noted and program not in self._outcomes

    def read_notes(self) -> list[Program]:
        """Find the outcomes of all noted programs; return these programs."""
        found = []
        for program in list(self._noted):
            reference, find = self._noted.pop(program, (None, None))
            executable = None if reference is None else reference()
            if executable is not None and find is not None:
                self.add_outcomes(program, find(executable))
                found.append(program)
        return found

    def set_counted(self, program: Program, counted: bool) -> None:
        with self._lock:
            (self._counted.add if counted else self._counted.discard)(program)

    def report(
        self, recorder: Recorder, observed: bool, only: Collection[Program] | None = None
    ) -> None:
        """Report our callbacks to `recorder`, or if `observed` JAX's own callbacks.

        Args:
            recorder: the recorder.
            observed: see above.
            only: the programs to report; None: all.
        """
        with self._lock:
            known = [
                one
                for program, outcomes in self._outcomes.items()
                if only is None or program in only
                for one in outcomes
                if one.site.flavor.startswith(OBSERVED) is observed
            ]
            counted = [program for program in self._counted if not self.is_noted(program)]
        for one in known:
            recorder.add_earlier_outcome(one)
        for program in counted:
            recorder.start_counting_runs(program)
