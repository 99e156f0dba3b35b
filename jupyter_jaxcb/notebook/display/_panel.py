"""Build the data of the side panel and the badges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...recording import Site, Status
from ...register import Callback
from ...report import Rows, SiteProgress, SiteSummary, shapes_of, variant_facts
from ._origins import Origins
from ._sites import Sites

MAX_SITES = 500
_MAX_ROWS = 8  # operands and results of a diagram in a tooltip
_MAX_LEVELS = 4


def snapshot(
    callbacks: Mapping[str, Callback],
    known: Sites,
    origins: Origins,
    *,
    running: bool,
    live: Iterable[SiteProgress] = (),
) -> dict[str, Any]:
    """Return the state of the session as JSON.

    Args:
        callbacks: the registered callbacks by name, shown with the totals of their sites.
        known: the sites so far, shown as of the last cell that used them.
        origins: the cells they are in.
        running: whether a cell is running.
        live: the progress of the running cell.
    """
    sites = {summary.site: _finished(summary) for summary in list(known.latest.values())}
    for progress in live:
        sites[progress.site] = _unfinished(progress)
    current = [site for site in sites if _is_current(site, origins)]
    rows = Rows(current[-MAX_SITES:])
    shown = {site: sites[site] for site in current[-MAX_SITES:]}
    return {
        "running": running,
        "callbacks": [
            _callback(name, callback, shown, origins) for name, callback in callbacks.items()
        ],
        "sites": [_place(site, rows, origins) | facts for site, facts in shown.items()],
        "more_sites": len(current) - len(shown),
        "cells": dict(origins.digests),
    }


def _callback(
    name: str, callback: Callback, shown: Mapping[Site, dict[str, Any]], origins: Origins
) -> dict[str, Any]:
    code = getattr(callback.__wrapped__, "__code__", None)
    file = code.co_filename if code else ""
    cell, line = origins.place(file, code.co_firstlineno if code else 0)
    own = [facts for site, facts in shown.items() if _binds(site, callback)]
    return {
        "name": name,
        "flavor": callback.flavor,
        "options": callback.options,
        "cell": cell if origins.is_current(file) else None,
        "line": line,
        "where": f"line {line}" if cell else "",
        "sites": [place for place, site in enumerate(shown) if _binds(site, callback)],
        "calls": sum(facts["calls"] for facts in own),
        "elided": sum(facts["elided"] for facts in own),
        "errors": sum(len(facts["errors"]) for facts in own),
        "host_ns": sum(facts["host_ns"] for facts in own),
    }


def _binds(site: Site, callback: Callback) -> bool:
    return (site.function, site.flavor) == (callback.host.name, callback.flavor)


def _is_current(site: Site, origins: Origins) -> bool:
    """Whether the cells of its line and of its callers are unchanged since their last run."""
    return all(map(origins.is_current, (site.file, *(frame.file for frame in site.callers))))


def _place(site: Site, rows: Rows, origins: Origins) -> dict[str, Any]:
    cell, line = origins.place(site.file, site.line)
    return {
        "function": site.function,
        "flavor": site.flavor,
        "cell": cell,
        "line": line,
        "column": site.column,
        "where": rows.where(site, column=False),  # which stands beside it
        "source": site.source,
    }


def _finished(summary: SiteSummary) -> dict[str, Any]:
    return {
        "consequence": summary.consequence,
        "reason": summary.reason,
        "advice": summary.advice,
        "calls": summary.calls,
        "elided": summary.elided,
        "host_ns": summary.host_ns,
        "shapes": shapes_of(summary),
        "vmap": _vmap(summary),
        "errors": list(summary.errors),
    }


def _vmap(summary: SiteSummary) -> dict[str, Any] | None:
    """Return the shapes to draw in a tooltip, which has room for one small diagram."""
    if len(summary.shapes) != 1:
        return None
    (shapes,) = summary.shapes
    rows = len(shapes.operands) + len(shapes.results)
    fits = rows <= _MAX_ROWS and 0 < len(shapes.levels) <= _MAX_LEVELS
    return variant_facts(shapes) if fits else None


def _unfinished(progress: SiteProgress) -> dict[str, Any]:
    """Describe a site of the running cell; its status is known at the end."""
    return {
        "consequence": "raised" if progress.errors else str(Status.KEPT),
        "reason": "",
        "advice": "",
        "calls": progress.calls,
        "elided": 0,
        "host_ns": progress.host_ns,
        "shapes": "",
        "vmap": None,
        "errors": [f"{progress.errors:,} failed"] if progress.errors else [],
    }
