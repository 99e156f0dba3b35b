"""A `Matrix`, one function under several transformations, as an output."""

from __future__ import annotations

from html import escape

from ...recording import Matrix, Status
from ..summary import SiteSummary
from ..text import (
    NO_CALLBACKS,
    code,
    count_words,
    matrix_missing,
    matrix_refusals,
    matrix_refused,
    matrix_rows,
    status_words,
)
from ._output import Output, Spot, advice, output, place, status, table, toned

_WIDTH = 40  # of the source lines


def matrix_output(matrix: Matrix) -> Output:
    """Return a row for each callback, a column for each transformation, and remarks below."""
    rows = matrix_rows(matrix)
    if not rows:
        return output([f"<p>{NO_CALLBACKS}</p>"])
    empty = {name: matrix_refused(matrix, name) for name in matrix.transformations}
    cells = [
        [
            place(site.where),
            code(site.source, _WIDTH),
            *(
                toned("quiet", refused) if refused else _cell(of.get(name))
                for name, refused in empty.items()
            ),
        ]
        for site, of in rows
    ]
    missing = matrix_missing(matrix)
    parts = [
        table(["Where", "Source", *matrix.transformations], cells),
        *(
            f"<p><b>{escape(names)}</b> refused: {escape(words)}</p>"
            for words, names in matrix_refusals(matrix).items()
        ),
        *(
            f"<p>{_named(site)}: {escape(site.reason)}</p>"
            f"{advice(site.advice) if site.advice else ''}"
            for site in missing
        ),
    ]
    return output(parts, (_spot(site) for site in [*(site for site, _ in rows), *missing]))


def _named(site: SiteSummary) -> str:
    return f"{place(site.where)} {escape(site.name)}".rstrip()


def _spot(site: SiteSummary) -> Spot:
    return Spot(site.site.file, site.site.line, site.site.source)


def _cell(site: SiteSummary | None) -> str:
    if site is None:
        return "–"
    if site.status is Status.KEPT:
        return escape(count_words(site, None))
    words = status(site.consequence, status_words(site))
    if site.expected is None or not site.written:
        return words
    return f"{words} {site.expected:,}/{site.written:,}"
