"""An immutable recording, and its JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ._columns import ROW
from ._facts import (
    ELIDED,
    Aval,
    Fate,
    Frame,
    HostCall,
    LoweredSite,
    Outcome,
    Program,
    Site,
    VmapLevel,
)

SCHEMA = 1


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

    def __len__(self) -> int:
        """Number of host calls kept."""
        return len(self.calls)

    def __repr__(self) -> str:
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
        sites = {
            _whole(site): site
            for site in (
                *self.bound,
                *(fact.site for fact in self.lowered),
                *(outcome.site for outcome in self.outcomes),
            )
        }
        place = {key: number for number, key in enumerate(sites)}
        return json.dumps(
            {
                "schema": SCHEMA,
                "environment": dict(self.environment),
                "sites": [_site_to_json(site) for site in sites.values()],
                "bound": [[place[_whole(s)], count] for s, count in self.bound.items()],
                "lowered": [_lowered_to_json(fact, place) for fact in self.lowered],
                "outcomes": [
                    {
                        **{name: getattr(outcome, name) for name in _OUTCOME},
                        "site": place[_whole(outcome.site)],
                    }
                    for outcome in self.outcomes
                ],
                "runs": [[program, count] for program, count in self.runs.items()],
                "stale": sorted(self.stale),
                "calls": {name: self.calls[name].tolist() for name in ROW.names or ()},
                "threads": self.threads,
                "errors": self.errors,
                "overflow": self.overflow,
                "cells": self.cells,
            }
        )

    @staticmethod
    def from_json(text: str) -> Recording:
        """The recording that `to_json` wrote.

        Raises:
            ValueError: the text is of another schema; the message names both.
        """
        data = json.loads(text)
        if data.get("schema") != SCHEMA:
            raise ValueError(
                f"cannot read a recording of schema {data.get('schema')!r}: this version of "
                f"jupyter_jaxcb reads schema {SCHEMA}. Install the version that wrote it."
            )
        sites = [_site_from_json(site) for site in data["sites"]]
        calls = np.empty(len(data["calls"]["lane"]), ROW)
        for name, column in data["calls"].items():
            calls[name] = column
        calls.flags.writeable = False
        return Recording(
            bound={sites[number]: count for number, count in data["bound"]},
            lowered=tuple(_lowered_from_json(fact, sites) for fact in data["lowered"]),
            outcomes=tuple(_outcome_from_json(outcome, sites) for outcome in data["outcomes"]),
            runs={Program(*program): count for program, count in data["runs"]},
            stale=frozenset(data["stale"]),
            calls=calls,
            threads=tuple(data["threads"]),
            errors=tuple(data["errors"]),
            overflow=data["overflow"],
            environment=data["environment"],
            cells=tuple(data["cells"]),
        )


_OUTCOME = [field.name for field in dataclasses.fields(Outcome)]


def _outcome_from_json(data: dict[str, Any], sites: list[Site]) -> Outcome:
    parsed = {
        "site": sites[data["site"]],
        "program": Program(*data["program"]),
        "fate": Fate(data["fate"]),
        "around": tuple(data["around"]),
        "stack": tuple(data["stack"]),
        "notes": tuple(data["notes"]),
    }
    return Outcome(**{**data, **parsed})


def _whole(site: Site) -> tuple[Any, ...]:
    """All of a site, also what its equality leaves out: one line is reached by several chains."""
    return site, site.source, site.callers


def _site_to_json(site: Site) -> dict[str, Any]:
    return {field.name: getattr(site, field.name) for field in dataclasses.fields(site)}


def _site_from_json(data: dict[str, Any]) -> Site:
    return Site(**{**data, "callers": tuple(Frame(*frame) for frame in data["callers"])})


def _lowered_to_json(fact: LoweredSite, place: Mapping[tuple[Any, ...], int]) -> dict[str, Any]:
    return {
        "site": place[_whole(fact.site)],
        "program": fact.program,
        "index": fact.index,
        "operands": fact.operands,
        "results": fact.results,
        "levels": fact.levels,
        "version": fact.version,
        "devices": fact.devices,
        "shard": fact.shard,
        "gathered_bytes": fact.gathered_bytes,
    }


def _lowered_from_json(data: dict[str, Any], sites: list[Site]) -> LoweredSite:
    return LoweredSite(
        site=sites[data["site"]],
        program=Program(*data["program"]) if data["program"] else None,
        index=data["index"],
        operands=tuple(Aval(tuple(shape), dtype) for shape, dtype in data["operands"]),
        results=tuple(Aval(tuple(shape), dtype) for shape, dtype in data["results"]),
        levels=tuple(VmapLevel(n, method, tuple(b)) for n, method, b in data["levels"]),
        version=data["version"],
        devices=data["devices"],
        shard=data["shard"],
        gathered_bytes=data["gathered_bytes"],
    )
