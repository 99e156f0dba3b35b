"""The table that ``%jax_callbacks`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ...recording import between, element
from ...register import Callback
from ...report import (
    Output,
    Rows,
    SiteSummary,
    Spot,
    aligned,
    call_words,
    code,
    output,
    place,
    shorten,
    status,
    table,
    term,
    time_words,
    toned,
)
from ..display import Origins, output_bundle

_HEADER = ("callback", "flavor", "where", "source", "status", "calls", "time")
_TITLES = ("Callback", "Flavor", "Where", "Source", "Status", ">Calls", ">Time")
_NOT_USED = "not used yet"
_WIDTH = 60  # of a line of code in HTML


class _Row(NamedTuple):
    callback: str
    flavor: str
    where: str = ""
    site: SiteSummary | None = None  # None: it is not used yet
    elided: int = 0
    calls: int = 0
    host_ns: int = 0


class CallbackTable:
    """All registered callbacks and call sites, with totals over the session.

    Args:
        callbacks: the registered callbacks by name.
        sites: the totals of call sites.
        origins: the cells that they are in.
    """

    def __init__(
        self,
        callbacks: Mapping[str, Callback],
        sites: list[SiteSummary],
        origins: Origins,
    ) -> None:
        self._origins = origins
        rows = Rows((summary.site for summary in sites), origins.where)
        self._rows = [_site_row(where, own) for where, own in _by_text(sites, rows)]
        bound = {site.site.function for site in sites}
        self._rows += [
            _Row(callback.host.name, callback.flavor)
            for callback in callbacks.values()
            if callback.host.name not in bound
        ]
        self._rows.sort(key=lambda row: row.callback)

    def __repr__(self) -> str:
        if not self._rows:
            return "no callbacks yet: register functions with %%jax_callback"
        return "\n".join(aligned([_HEADER, *map(_words, self._rows)]))

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[dict, dict]:
        return output_bundle(repr(self), self._output(), self._origins)

    def _output(self) -> Output:
        if not self._rows:
            return output([element("p", repr(self))])
        sites = [row.site.site for row in self._rows if row.site]
        spots = (Spot(site.file, site.line, site.source, numbered=False) for site in sites)
        return output([table(_TITLES, map(_cells, self._rows))], spots)


def _words(row: _Row) -> tuple[str, ...]:
    if row.site is None:
        return row.callback, row.flavor, "", "", _NOT_USED, "", ""
    elided = f"{row.elided} elided" if row.elided else ""
    return (
        row.callback,
        row.flavor,
        row.where,
        shorten(row.site.site.source),
        ", ".join(filter(None, (row.site.status_words, elided))),
        call_words(row.calls),
        time_words(row.host_ns) if row.calls else "",
    )


def _cells(row: _Row) -> tuple[str, ...]:
    named = element("b", row.callback), row.flavor
    if row.site is None:
        return *named, "", "", toned("quiet", _NOT_USED), "", ""
    elided = term("elided", f"{row.elided:,} elided") if row.elided else ""
    return (
        *named,
        place(row.where),
        code(row.site.site.source, _WIDTH),
        between(" ", (status(row.site.consequence, row.site.status_words), elided)),
        f"{row.calls:,}",
        time_words(row.host_ns) if row.calls else "",
    )


def _by_text(sites: list[SiteSummary], rows: Rows) -> list[tuple[str, list[SiteSummary]]]:
    """Group the sites that look alike, by place: a cell that ran again has created new sites."""
    groups: dict[tuple[str, ...], list[SiteSummary]] = {}
    for summary in sites:
        site = summary.site
        key = (
            rows.where(site, column=False),
            site.function,
            site.flavor,
            site.source,
            str(summary.status),
        )
        groups.setdefault(key, []).append(summary)
    return [(key[0], own) for key, own in groups.items()]


def _site_row(where: str, summaries: list[SiteSummary]) -> _Row:
    return _Row(
        summaries[-1].site.function,
        summaries[-1].site.flavor,
        where,
        summaries[-1],
        sum(summary.elided for summary in summaries),
        sum(summary.calls for summary in summaries),
        sum(summary.host_ns for summary in summaries),
    )
