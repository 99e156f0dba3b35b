"""Render a `Matrix`, one function under several transformations, as a table of text."""

from __future__ import annotations

import dataclasses

from ...recording import Matrix, Recording, Site, Status, visible
from ..summary import SIGNS, Rows, SiteSummary, aligned, path, shorten, summarize

WIDTH = 22  # of the source lines
_NEEDS_GRAD = "needs grad"
NO_CALLBACKS = (  # in an explained call
    "no jupyter_jaxcb callbacks; for jax.pure_callback and JAX's other callbacks, write "
    "%jax_explain --jax, or explain the call inside of with jaxcb.observe_jax():"
)


def matrix_to_text(matrix: Matrix) -> str:
    """Return a table: a row per callback, a column per transformation, and remarks below.

    The remarks say why JAX refused a transformation and why calls are missing.
    """
    rows = _rows(matrix)
    if not rows:
        return NO_CALLBACKS
    head = ["where", "source", *matrix.transformations]
    remarks = (f"  {text}" for text in _remarks(matrix))
    return visible("\n".join([*aligned([head, *rows]), *remarks]))


def _rows(matrix: Matrix) -> list[list[str]]:
    """Return the place, the source line, and a cell for each transformation, by call site."""
    return [
        [
            site.where,
            shorten(site.source, WIDTH),
            *(
                matrix_refused(matrix, name) or _cell(of.get(name))
                for name in matrix.transformations
            ),
        ]
        for site, of in matrix_rows(matrix)
    ]


def matrix_rows(matrix: Matrix) -> list[tuple[SiteSummary, dict[str, SiteSummary]]]:
    """Return a summary of each call site, and those by transformation, in program order."""
    columns = matrix_summaries(matrix)
    found: dict[Site, dict[str, SiteSummary]] = {}
    for name, column in columns.items():
        for one in column:
            found.setdefault(one.site, {})[name] = one
    in_order = sorted(found, key=lambda site: (site.file, site.line, site.column, path(site)))
    return [(next(iter(found[site].values())), found[site]) for site in in_order]


def matrix_summaries(matrix: Matrix) -> dict[str, list[SiteSummary]]:
    """Summarize the sites of each transformation, with names that are unique in all of them."""
    found = {name: summarize(recording) for name, recording in matrix.columns.items()}
    recording = next(iter(matrix.columns.values()), Recording())
    rows = Rows((one.site for column in found.values() for one in column), recording.where)
    return {
        name: [
            dataclasses.replace(one, where=rows.where(one.site), name=rows.name(one.site))
            for one in column
        ]
        for name, column in found.items()
    }


def _cell(summary: SiteSummary | None) -> str:
    if summary is None:
        return "–"
    if summary.status is Status.KEPT:
        return summary.count
    word = f"{SIGNS[summary.consequence]} {summary.status_words}"
    if summary.expected is None or not summary.written:
        return word
    return f"{word} {summary.expected:,}/{summary.written:,}"


def _remarks(matrix: Matrix) -> list[str]:
    """Say why transformations are refused and why calls are missing, each reason once."""
    refused = [f"{names} refused: {words}" for words, names in matrix_refusals(matrix).items()]
    return [*refused, *(f"{site.place}: {site.why}" for site in matrix_missing(matrix))]


def matrix_refused(matrix: Matrix, name: str) -> str:
    """Return ``refused``, or ``needs grad`` for a checkpoint whose derivative is refused."""
    if name not in matrix.refused:
        return ""
    return _NEEDS_GRAD if name == "remat" and "grad" in matrix.refused else "refused"


def matrix_refusals(matrix: Matrix) -> dict[str, str]:
    """Return the transformations that JAX refused, by the reason."""
    names: dict[str, list[str]] = {}
    for name, words in matrix.refused.items():
        if matrix_refused(matrix, name) != _NEEDS_GRAD:
            names.setdefault(words, []).append(name)
    return {words: ", ".join(of) for words, of in names.items()}


def matrix_missing(matrix: Matrix) -> list[SiteSummary]:
    """Return the sites that miss calls, once for each reason."""
    found: dict[tuple[str, str], SiteSummary] = {}
    for column in matrix_summaries(matrix).values():
        for site in column:
            if site.reason:
                found.setdefault((site.place, site.consequence), site)
    return list(found.values())
