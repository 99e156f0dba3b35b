"""The JSON of a recording; its schema number changes when the meaning of a field does."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ._columns import ROW
from ._facts import (
    Aval,
    Compilation,
    Fate,
    Frame,
    LoweredSite,
    NotFinite,
    Outcome,
    Preview,
    Program,
    Running,
    Site,
    VmapLevel,
)

if TYPE_CHECKING:
    from ._recording import Recording

SCHEMA = 1


def to_json(recording: Recording) -> str:
    """See `Recording.to_json`."""
    sites = {
        _whole(site): site
        for site in (
            *recording.bound,
            *(fact.site for fact in recording.lowered),
            *(outcome.site for outcome in recording.outcomes),
        )
    }
    place = {key: number for number, key in enumerate(sites)}
    return json.dumps(
        {
            "schema": SCHEMA,
            "environment": dict(recording.environment),
            "sites": [_site_to_json(site) for site in sites.values()],
            "bound": [[place[_whole(s)], count] for s, count in recording.bound.items()],
            "lowered": [_lowered_to_json(fact, place) for fact in recording.lowered],
            "outcomes": [
                {
                    **{name: getattr(outcome, name) for name in _OUTCOME},
                    "site": place[_whole(outcome.site)],
                }
                for outcome in recording.outcomes
            ],
            "runs": [[program, count] for program, count in recording.runs.items()],
            "stale": sorted(recording.stale),
            "calls": {name: recording.calls[name].tolist() for name in ROW.names or ()},
            "threads": recording.threads,
            "errors": recording.errors,
            "overflow": recording.overflow,
            "cells": recording.cells,
            "compilations": recording.compilations,
            "previews": recording.previews,
            "not_finite": recording.not_finite,
            "ahead": recording.ahead,
            "running": recording.running,
        }
    )


def fields(text: str) -> dict[str, Any]:
    """The fields of the recording that `to_json` wrote."""
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
    return dict(
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
        compilations=tuple(_compilation_from_json(*fact) for fact in data["compilations"]),
        previews=tuple(
            Preview(fact, crossing, lane, tuple(operands), tuple(results), failed)
            for fact, crossing, lane, operands, results, failed in data["previews"]
        ),
        not_finite=tuple(NotFinite(*fact) for fact in data["not_finite"]),
        ahead=data["ahead"],
        running=tuple(_running_from_json(*one) for one in data.get("running", ())),
    )


_OUTCOME = [field.name for field in dataclasses.fields(Outcome)]


def _compilation_from_json(
    program: list, function: int, arguments: list, *rest: Any
) -> Compilation:
    avals = tuple(Aval(tuple(shape), dtype) for shape, dtype in arguments)
    return Compilation(Program(*program), function, avals, *rest)


def _running_from_json(*fields: Any) -> Running:
    running = Running._make(fields)
    return running._replace(stack=tuple(Frame(*frame) for frame in running.stack))


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
        "device": fact.device,
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
        device=data["device"],
        gathered_bytes=data["gathered_bytes"],
    )
