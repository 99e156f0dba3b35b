"""What was recorded: an immutable value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from . import _json
from ._columns import ROW
from ._facts import (
    ELIDED,
    Compilation,
    HostCall,
    LoweredSite,
    NotFinite,
    Outcome,
    Preview,
    Program,
    Running,
    Site,
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """What happened while it was recorded.

    Attributes:
        bound: how often each site was bound, in the order they were traced or called first.
        lowered: every (site, program) that was lowered or called, calls refer to it by index.
        outcomes: what compiled programs made of each bind, of those compiled or run meanwhile.
        runs: how often each of these programs ran; those are left out whose runs cannot be seen.
        stale: those of `lowered` whose program calls an earlier registration of the function.
        calls: the host calls as a read-only structured array, one row each (`ROW`).
        threads: names of the threads that calls came from, by index.
        errors: what failing calls raised; a row's ``error`` is 1 + an index into it.
        overflow: host calls that came after the log was full: counted, not kept.
        environment: versions and backend the fates depend on.
        cells: file names under which the recorded notebook cell was compiled; empty in a script.
        compilations: what it took to make the programs of `outcomes` that were compiled meanwhile.
        previews: values of the first calls of each site; kept out of saved notebooks.
        not_finite: the sites that answered NaN or infinity. Results of more than 4,096 elements are
            looked at in previewed calls only.
        ahead: nothing ran: it was asked what the programs would do.
        running: host calls that had not come back when it ended.
    """

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
    previews: tuple[Preview, ...] = ()
    not_finite: tuple[NotFinite, ...] = ()
    ahead: bool = False
    running: tuple[Running, ...] = ()

    def __len__(self) -> int:
        """Number of host calls kept."""
        return len(self.calls)

    def __repr__(self) -> str:
        if self.ahead:
            fates = ", ".join(f"{o.site.function} {o.fate}" for o in self.outcomes)
            return f"<Recording of nothing run: {fates or 'no callbacks'}>"
        sites = len({fact.site for fact in self.lowered})
        calls = f"{len(self)} host call{'' if len(self) == 1 else 's'}"
        return f"<Recording of {calls} from {sites} site{'' if sites == 1 else 's'}>"

    def __iter__(self) -> Iterator[HostCall]:
        """Host calls in the order they were logged."""
        for row in self.calls.tolist():
            start, end, lowered, crossing, lane, thread, version, error = row
            text = self.errors[error - 1] if error else None
            yield HostCall(lowered, crossing, lane, thread, start, end, version, text)

    @property
    def elisions(self) -> tuple[Outcome, ...]:
        """Those of `outcomes` in which calls are missing, each with its reason."""
        return tuple(outcome for outcome in self.outcomes if outcome.fate in ELIDED)

    def where(self, site: Site) -> str:
        """``line 3`` in the recorded cell, ``line 3, another cell``, ``model.py:12`` in a file.

        The same in every run of a notebook: no cell numbers, no file names of a kernel.
        """
        if site.cell and self.cells and site.file not in self.cells:
            return f"{site.where}, another cell"
        return site.where

    def calls_of(self, function: str) -> list[HostCall]:
        """The host calls of the host function named `function`."""
        return [call for call in self if self.lowered[call.lowered].site.function == function]

    def to_json(self) -> str:
        """The whole recording as JSON text, for `from_json`; times in nanoseconds."""
        return _json.to_json(self)

    @staticmethod
    def from_json(text: str) -> Recording:
        """The recording that `to_json` wrote.

        Raises:
            ValueError: the text is of another schema; the message names both.
        """
        return Recording(**_json.fields(text))
