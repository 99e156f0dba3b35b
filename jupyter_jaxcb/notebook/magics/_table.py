"""The table that ``%jax_callbacks`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ...register import Callback
from ...report import Rows, SiteSummary, call_words, shorten, status_words, time_words

_HEADER = ("callback", "flavor", "where", "source", "status", "calls", "time")


class CallbackTable:
    """All registered callbacks and call sites, with totals over the session."""

    def __init__(self, callbacks: Mapping[str, Callback], sites: list[SiteSummary]) -> None:
        rows = Rows(summary.site for summary in sites)
        self._rows = [_site_row(where, own) for where, own in _by_text(sites, rows)]
        bound = {site.site.function for site in sites}
        self._rows += [
            (callback.host.name, callback.flavor, "", "", "not used yet", "", "")
            for callback in callbacks.values()
            if callback.host.name not in bound
        ]
        self._rows.sort(key=lambda row: row[0])

    def __repr__(self) -> str:
        if not self._rows:
            return "no callbacks yet: register functions with %%jax_callback"
        table = [_HEADER, *self._rows]
        widths = [max(len(row[column]) for row in table) for column in range(len(_HEADER))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in table
        )

    def _repr_html_(self) -> str:
        if not self._rows:
            return f"<p>{escape(repr(self))}</p>"
        head = "".join(f"<th style='text-align:left'>{escape(word)}</th>" for word in _HEADER)
        body = "".join(
            "<tr>" + "".join(f"<td style='text-align:left'>{escape(c)}</td>" for c in row) + "</tr>"
            for row in self._rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


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


def _site_row(where: str, summaries: list[SiteSummary]) -> tuple[str, ...]:
    site, status = summaries[0].site, status_words(summaries[0])
    elided = sum(summary.elided for summary in summaries)
    calls = sum(summary.calls for summary in summaries)
    return (
        site.function,
        site.flavor,
        where,
        shorten(site.source),
        ", ".join(filter(None, (status, f"{elided} elided" if elided else ""))),
        call_words(calls),
        time_words(sum(summary.host_ns for summary in summaries)) if calls else "",
    )
