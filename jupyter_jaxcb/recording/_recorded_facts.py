"""The fields of a recording, and simple queries on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from ._columns import ROW
from ._facts import (
    Compilation,
    Frame,
    HostCall,
    LoweredSite,
    MaskUse,
    NotFinite,
    NotFiniteCall,
    NotKept,
    ObjectUse,
    Outcome,
    Process,
    Program,
    QueueUse,
    Running,
    SampleValues,
    Site,
    Worker,
)
from ._profile import Profile


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class RecordedFacts:
    """The fields of a `Recording`, which documents them; files and tables are made from these."""

    bound: Mapping[Site, int] = dataclasses.field(default_factory=dict)
    lowered: tuple[LoweredSite, ...] = ()
    outcomes: tuple[Outcome, ...] = ()
    runs: Mapping[Program, int] = dataclasses.field(default_factory=dict)
    stale: frozenset[int] = frozenset()
    calls: np.ndarray = dataclasses.field(default_factory=lambda: np.empty(0, ROW))
    threads: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    overflow: int = 0
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict)
    cells: tuple[str, ...] = ()
    compilations: tuple[Compilation, ...] = ()
    sample_values: tuple[SampleValues, ...] = ()
    not_finite: tuple[NotFinite, ...] = ()
    not_finite_calls: tuple[NotFiniteCall, ...] = ()
    ahead: bool = False
    running: tuple[Running, ...] = ()
    processes: tuple[Process, ...] = ()
    workers: tuple[Worker, ...] = ()
    not_kept: tuple[NotKept, ...] = ()
    queue: tuple[QueueUse, ...] = ()
    masks: tuple[MaskUse, ...] = ()
    objects: tuple[ObjectUse, ...] = ()
    wall_ns: int = 0
    late_ns: int = 0
    profile: Profile | None = None

    def __len__(self) -> int:
        """Return the number of host calls in the log."""
        return len(self.calls)

    def __iter__(self) -> Iterator[HostCall]:
        """Iterate over the host calls in the order they were logged."""
        for row in self.calls.tolist():
            start, end, lowered, crossing, element, thread, version, error, *more = row
            text = self.errors[error - 1] if error else None
            process = self.lowered[lowered].process
            yield HostCall(
                lowered, crossing, element, thread, start, end, version, text, process, *more
            )

    @property
    def elisions(self) -> tuple[Outcome, ...]:
        """The outcomes that are elided, each with its reason."""
        return tuple(outcome for outcome in self.outcomes if outcome.elided)

    def where(self, site: Site | Frame) -> str:
        """Name a place: ``line 3`` in the recorded cell, ``line 3, another cell``, ``model.py:12``.

        The name is the same in every run of a notebook: it has no cell number and no file name of
        the kernel.
        """
        if site.cell and self.cells and site.file not in self.cells:
            return f"{site.where}, another cell"
        return site.where

    def calls_of(self, function: str) -> list[HostCall]:
        """Return the host calls of the host function named `function`."""
        return [call for call in self if self.lowered[call.lowered].site.function == function]
