"""A recording as a Jupyter MIME bundle.

Deterministic facts go into the data, times and threads into the metadata: notebooks then pass
nbval unsanitised, which compares data and leaves metadata alone.
"""

from __future__ import annotations

from typing import Any

from ..recording import SCHEMA, Recording
from ._html import to_html
from ._order import out_of_order
from ._summary import Shapes, SiteSummary, summarize
from ._text import to_text

MIME_TYPE = f"application/vnd.jupyter-jaxcb.recording.v{SCHEMA}+json"
MAX_SAVED_CALLS = 2_000  # rows of the call table that go into a saved notebook


def to_mimebundle(
    recording: Recording, *, times: bool = False, values: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Data and metadata of the display of `recording`.

    Args:
        recording: what to show.
        times: put times into the plain text too (for a terminal, which saves nothing).
        values: with what the first calls of each site were given and answered. They are saved with
            the notebook.
    """
    sites = summarize(recording)
    data = {
        "text/plain": to_text(recording, times=times, values=values),
        "text/html": to_html(recording, values=values),
        MIME_TYPE: {
            "schema": SCHEMA,
            "sites": [_site(summary, values) for summary in sites],
            "overflow": recording.overflow,
            "ahead": recording.ahead,
        },
    }
    return data, {MIME_TYPE: _measured(recording, sites)}


def _site(summary: SiteSummary, values: bool) -> dict[str, Any]:
    site = summary.site
    return {
        "function": site.function,
        "flavor": site.flavor,
        "where": summary.where,
        "line": site.line,
        "column": site.column,
        "source": site.source,
        "fate": str(summary.fate),
        "reason": summary.reason,
        "remedy": summary.remedy,
        "calls": summary.calls,
        "crossings": summary.crossings,
        "expected": summary.expected,
        "written": summary.written,
        "elided": summary.elided,
        "notes": list(summary.notes),
        "errors": list(summary.errors),
        "shapes": [_shapes(shapes) for shapes in summary.shapes],
        "previews": [
            [*preview[2:], shard] for preview, shard in (summary.previews if values else ())
        ],
    }


def _shapes(shapes: Shapes) -> dict[str, Any]:
    return {
        "operands": [list(aval) for aval in shapes.operands],
        "results": [list(aval) for aval in shapes.results],
        "levels": [list(level) for level in shapes.levels],
        "calls": shapes.calls,
        "shards": shapes.shards,
        "devices": list(shapes.devices),
        "gathered_bytes": shapes.gathered_bytes,
    }


def _measured(recording: Recording, sites: list[SiteSummary]) -> dict[str, Any]:
    place = {summary.site: number for number, summary in enumerate(sites)}
    kept = recording.calls[:MAX_SAVED_CALLS]
    start = int(kept["start_ns"].min()) if len(kept) else 0
    return {
        "environment": dict(recording.environment),
        "out_of_order": out_of_order(recording, sites),
        "compilations": [
            {"program": one.program.name, "lower_ns": one.lower_ns, "compile_ns": one.compile_ns}
            for one in recording.compilations
        ],
        "threads": list(recording.threads),
        "host_ns": [summary.host_ns for summary in sites],
        # JAX's own words, which change with its version.
        "around": [list(summary.around) for summary in sites],
        "stack": [list(summary.stack) for summary in sites],
        "calls": {
            "site": [place[recording.lowered[i].site] for i in kept["lowered"].tolist()],
            "start_ns": (kept["start_ns"] - start).tolist(),
            "duration_ns": (kept["end_ns"] - kept["start_ns"]).tolist(),
            "lane": kept["lane"].tolist(),
            "thread": kept["thread"].tolist(),
        },
        "calls_not_saved": len(recording) - len(kept),
    }
