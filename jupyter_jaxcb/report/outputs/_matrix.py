"""A `Matrix`, one function under several transformations, as an output."""

from __future__ import annotations

from ...recording import Html, Matrix, Status, element, html
from ..summary import SiteSummary
from ..text import (
    NO_CALLBACKS,
    code,
    matrix_missing,
    matrix_refusals,
    matrix_refused,
    matrix_rows,
)
from ._output import Output, Spot, advice, output, place, status, table, toned

_WIDTH = 40  # of the source lines


def matrix_output(matrix: Matrix) -> Output:
    """Return a row for each callback, a column for each transformation, and remarks below."""
    rows = matrix_rows(matrix)
    if not rows:
        return output([element("p", NO_CALLBACKS)])
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
            element("p", element("b", names), f" refused: {words}")
            for words, names in matrix_refusals(matrix).items()
        ),
        *(part for site in missing for part in _remark(site)),
    ]
    return output(parts, (_spot(site) for site in [*(site for site, _ in rows), *missing]))


def _remark(site: SiteSummary) -> list[Html]:
    words = element("p", place(site.where), f" {site.name}".rstrip(), f": {site.reason}")
    return [words, advice(site.advice)] if site.advice else [words]


def _spot(site: SiteSummary) -> Spot:
    return Spot(site.site.file, site.site.line, site.site.source)


def _cell(site: SiteSummary | None) -> str:
    if site is None:
        return "–"
    if site.status is Status.KEPT:
        return site.count
    words = status(site.consequence, site.status_words)
    if site.expected is None or not site.written:
        return words
    return html(words, f" {site.expected:,}/{site.written:,}")
