"""Build the Jupyter MIME bundle of a recording.

Deterministic facts go into the data, times and threads into the metadata. nbval compares only the
data, so notebooks pass it without sanitizing. `labextension/src/view/data/schema.ts` declares the
types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...recording import Compilation, Recording, SampleValues, VmapLevel
from ..profile import to_text
from ..summary import Mask, Shapes, SiteSummary, out_of_order, summarize
from ..text import by_other_threads, headline, sites_to_html, sites_to_text
from ._columns import CallColumns, call_columns, sample_rows, to_saved, variant_numbers
from ._profile import profile_facts

SCHEMA = 1  # of the bundle that a notebook saves
MIME_TYPE = f"application/vnd.jupyter-jaxcb.recording.v{SCHEMA}+json"
MAX_SAVED_CALLS = 20_000  # saved with a notebook; about 100 kB if no two are alike
MAX_PAGE_CALLS = 2_000_000  # in a page; `unpack.ts` accepts no more
_SAVED_UNIT_NS = 100
# Maps a file and a line to the front end's cell id (None: not in a cell) and the line in that cell.
Place = Callable[[str, int], tuple[str | None, int]]


def to_mimebundle(
    recording: Recording,
    *,
    times: bool = False,
    values: bool = False,
    place: Place | None = None,
    name: str = "",
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data and metadata of the display of `recording`.

    Args:
        recording: the recording to show.
        times: include times in the plain text too (for a terminal, which saves nothing).
        values: include the sample values, which are then saved with the notebook.
        place: maps a file and a line to a notebook cell.
        name: the id under which the kernel can send the full recording while it runs.
    """
    sites = summarize(recording)
    data = {
        "text/plain": (
            to_text(recording, values=values)
            if times
            else sites_to_text(recording, sites, times=False, values=values)
        ),
        "text/html": sites_to_html(recording, sites, values=values),
        MIME_TYPE: _facts(recording, sites, values),
    }
    kept = recording.calls[:MAX_SAVED_CALLS]
    columns = call_columns(kept, variant_numbers(recording, sites), unit_ns=_SAVED_UNIT_NS)
    saved = _saved(recording, sites, columns, values=values, place=place)
    return data, {MIME_TYPE: {**saved, "id": name}}


def to_page(recording: Recording) -> dict[str, Any]:
    """Return everything that a page without a kernel shows, as JSON."""
    sites = summarize(recording)
    kept = recording.calls[:MAX_PAGE_CALLS]
    columns = call_columns(kept, variant_numbers(recording, sites))
    saved = _saved(recording, sites, columns, values=True, place=None)
    return {
        "facts": _facts(recording, sites, values=True),
        "measured": {**saved, "id": ""},
    }


def to_message(
    recording: Recording, *, values: bool = True, place: Place | None = None, name: str = ""
) -> tuple[dict[str, Any], dict[str, Any], CallColumns]:
    """Return facts, measurements and every call, for a front end connected to the kernel.

    Args:
        recording: the recording to show.
        values: include the sample values.
        place: maps a file and a line to a notebook cell.
        name: the id of the recording's display, by which the front end recognizes the recording.
    """
    sites = summarize(recording)
    columns = call_columns(recording.calls, variant_numbers(recording, sites))
    measured = {
        **_measured(recording, sites, place, columns),
        "id": name,
        "sample_rows": _sample_rows(recording.calls, sites) if values else [[] for _ in sites],
        "calls": None,
        "calls_not_saved": 0,
    }
    return _facts(recording, sites, values), measured, columns


def _saved(
    recording: Recording,
    sites: list[SiteSummary],
    columns: CallColumns,
    *,
    values: bool,
    place: Place | None,
) -> dict[str, Any]:
    """Return `Measured` without the id, with the host calls of `columns`, the first ones."""
    kept = recording.calls[: columns.rows]
    return {
        **_measured(recording, sites, place, columns),
        "sample_rows": _sample_rows(kept, sites) if values else [[] for _ in sites],
        "calls": to_saved(columns) if columns.rows else None,
        "calls_not_saved": len(recording) - columns.rows,
    }


def _facts(recording: Recording, sites: list[SiteSummary], values: bool) -> dict[str, Any]:
    counted = sum(one.calls for one in recording.not_kept)
    return {
        "schema": SCHEMA,
        "headline": [list(part) for part in headline(sites)],
        "sites": [_site(summary, values) for summary in sites],
        "overflow": recording.overflow - counted,
        **({"not_kept": counted} if counted else {}),
        "ahead": recording.ahead,
    }


def _site(summary: SiteSummary, values: bool) -> dict[str, Any]:
    site = summary.site
    return {
        "function": site.function,
        "flavor": site.flavor,
        "where": summary.where,
        "line": site.line,
        "column": site.column,
        "cell": site.cell,
        "source": site.source,
        "status": str(summary.status),
        "consequence": summary.consequence,
        "reason": summary.reason,
        "advice": summary.advice,
        "calls": summary.calls,
        "crossings": summary.crossings,
        "expected": summary.expected,
        "written": summary.written,
        "elided": summary.elided,
        "notes": list(summary.notes),
        "errors": list(summary.errors),
        "shapes": [variant_facts(shapes) for shapes in summary.shapes],
        "sample_values": [
            [*sample[2:], shard] for sample, shard in (summary.sample_values if values else ())
        ],
    }


def variant_facts(shapes: Shapes) -> dict[str, Any]:
    """Return one variant of a call site, as the front end reads it."""
    mask, stopped = shapes.mask, shapes.stopped
    more: dict[str, Any] = {} if stopped is None else {"stopped": list(stopped)}
    if mask is not None:
        more["mask"] = [list(mask.batched), mask.needed, mask.elements]
    return {
        "operands": [list(aval) for aval in shapes.operands],
        "results": [list(aval) for aval in shapes.results],
        "operand_names": list(shapes.operand_names),
        "result_names": list(shapes.result_names),
        "levels": [[v.size, v.method, list(v.batched)] for v in shapes.levels],
        "axes": [_axes(level, mask, place) for place, level in enumerate(shapes.levels)],
        "calls": shapes.calls,
        "shards": shapes.shards,
        "devices": list(shapes.devices),
        "gathered_bytes": shapes.gathered_bytes,
        **more,
    }


def _axes(level: VmapLevel, mask: Mask | None, place: int) -> dict[str, Any]:
    """Return what one vmap did to operands, results and mask."""
    method = level.vmap_method
    own = {} if mask is None else {"mask": method.axis(mask.batched[place])}
    return {"operands": list(level.axes), "results": method.batched, **own}


def _measured(
    recording: Recording, sites: list[SiteSummary], place: Place | None, columns: CallColumns
) -> dict[str, Any]:
    profile = profile_facts(recording, columns.base_ns if columns.rows else None)
    places = [place(s.site.file, s.site.line) if place else (None, s.site.line) for s in sites]
    return {
        "environment": dict(recording.environment),
        "out_of_order": out_of_order(recording, sites),
        "by_worker": by_other_threads(recording),
        "compilations": [_compilation(one, columns) for one in recording.compilations],
        "threads": list(recording.threads),
        "errors": list(recording.errors),
        "host_ns": [summary.host_ns for summary in sites],
        "variants_ns": [[shapes.host_ns for shapes in summary.shapes] for summary in sites],
        "cells": [cell for cell, _ in places],
        "lines": [line for _, line in places],
        # JAX's own names, which change with its version.
        "around": [list(summary.around) for summary in sites],
        "stack": [list(summary.stack) for summary in sites],
    } | ({} if profile is None else {"profile": profile})


def _compilation(one: Compilation, columns: CallColumns) -> dict[str, Any]:
    began = one.end_ns - one.compile_ns - one.lower_ns  # XLA compiles right after JAX has lowered
    return {
        "program": one.program.name,
        "lower_ns": one.lower_ns,
        "compile_ns": one.compile_ns,
        # Counts from the first call, so usually negative. None: unknown, or there are no calls.
        "start_ns": began - columns.base_ns if one.end_ns and columns.rows else None,
    }


def _sample_rows(calls: Any, sites: list[SiteSummary]) -> list[list[int]]:
    sample_values: list[SampleValues] = [
        sample for site in sites for sample, _ in site.sample_values
    ]
    rows = iter(sample_rows(calls, sample_values))
    return [[next(rows) for _ in site.sample_values] for site in sites]
