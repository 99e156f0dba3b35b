"""What ``%jax_callbacks`` shows."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..report import SiteSummary, call_words, time_words
from ..stack import Callback

_HEADER = ("callback", "flavor", "where", "source", "fate", "calls", "time")


class CallbackTable:
    """Every registered callback and every site, with totals over the session."""

    def __init__(self, callbacks: Mapping[str, Callback], sites: list[SiteSummary]) -> None:
        self._rows = [_site_row(site) for site in sites]
        bound = {site.site.function for site in sites}
        self._rows += [
            (callback.host.name, callback.flavor, "", "", "not bound yet", "", "")
            for callback in callbacks.values()
            if callback.host.name not in bound
        ]
        self._rows.sort(key=lambda row: row[0])

    def __repr__(self) -> str:
        if not self._rows:
            return "no callbacks yet: register some with %%jax_callback"
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


def _site_row(summary: SiteSummary) -> tuple[str, ...]:
    site = summary.site
    return (
        site.function,
        site.flavor,
        summary.where,
        site.source,
        str(summary.fate) + (f", {summary.elided} elided" if summary.elided else ""),
        call_words(summary.calls),
        time_words(summary.host_ns) if summary.calls else "",
    )
