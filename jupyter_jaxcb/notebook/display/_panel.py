"""Build the data of the side panel and the badges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...recording import Site, where_now
from ...register import Callback
from ...report import (
    CallbackView,
    Rows,
    SiteProgress,
    SnapshotView,
    ValueView,
    unfinished,
)
from ._origins import Origins
from ._sites import Sites

MAX_SITES = 500


def snapshot(
    callbacks: Mapping[str, Callback],
    known: Sites,
    origins: Origins,
    *,
    running: bool,
    values: Sequence[ValueView] = (),
    live: Iterable[SiteProgress] = (),
) -> SnapshotView:
    """Return the state of the session as JSON.

    Args:
        callbacks: the registered callbacks by name, shown with the totals of their sites.
        known: the sites so far, shown as of the last cell that used them.
        origins: the cells they are in.
        running: whether a cell is running.
        values: what watched cells have seen, see `LineValues`.
        live: the progress of the running cell.
    """
    latest, running_now = dict(known.latest), {one.site: one for one in live}
    current = [site for site in latest | running_now if _is_current(site, origins)]
    rows = Rows(current[-MAX_SITES:], where_now)
    shown: dict[Site, dict[str, Any]] = {}
    for site in current[-MAX_SITES:]:
        where = rows.where(site, column=False)  # the column is shown beside it
        located = origins.place(site.file, site.line)
        progress = running_now.get(site)
        view = unfinished(progress, where).to_json() if progress else latest[site]
        if progress:
            run = "*" if located.cell not in (None, origins.running) else ""
        else:
            number = known.runs[site]
            run = str(number) if number and located.number not in (0, number) else ""
        if run:  # its own cell has another one
            view = view | {"figures": [*view["figures"], [f"in [{run}]", True]]}
        shown[site] = view | {"where": where, "cell_id": located.cell, "cell_line": located.line}
    return {
        "running": running,
        "callbacks": [
            _callback(name, callback, shown, origins).to_json()
            for name, callback in callbacks.items()
        ],
        "sites": list(shown.values()),
        "more_sites": len(current) - len(shown),
        "values": list(values),
        "cells": dict(origins.digests),
    }


def _callback(
    name: str, callback: Callback, shown: Mapping[Site, dict[str, Any]], origins: Origins
) -> CallbackView:
    code = getattr(callback.__wrapped__, "__code__", None)
    file = code.co_filename if code else ""
    cell, line, _ = origins.place(file, code.co_firstlineno if code else 0)
    own = [view for site, view in shown.items() if _binds(site, callback)]
    return CallbackView(
        name=name,
        flavor=callback.flavor,
        options=callback.options,
        cell=cell if origins.is_current(file) else None,
        line=line,
        where=f"line {line}" if cell else "",
        sites=tuple(place for place, site in enumerate(shown) if _binds(site, callback)),
        calls=sum(view["calls"] for view in own),
        elided=sum(view["elided"] for view in own),
        errors=sum(len(view["errors"]) for view in own),
        host_ns=sum(view["host_ns"] for view in own),
    )


def _binds(site: Site, callback: Callback) -> bool:
    return (site.function, site.flavor) == (callback.host.name, callback.flavor)


def _is_current(site: Site, origins: Origins) -> bool:
    """Whether the cells of its line and of its callers are unchanged since their last run."""
    return all(map(origins.is_current, (site.file, *(frame.file for frame in site.callers))))
