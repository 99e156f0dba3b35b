"""Render a recording as static HTML, for notebooks without the front end."""

from __future__ import annotations

from collections.abc import Sequence

from ...recording import Html, Recording, Status, between, element, html
from ..summary import (
    AXES,
    MAX_SITES,
    MUST_RETURN,
    OWN_AXES,
    SIGNS,
    SOURCE_WIDTH,
    AxisView,
    DiagramView,
    RowView,
    SiteSummary,
    full_words,
    left_out,
    shorten,
)
from ._headline import View, view
from ._other_threads import by_other_threads

# Each output of a notebook is separate and must read well without style sheets, which code hosts
# remove, so there is none: elements carry the meaning (<strong> is a status other than kept). Call
# sites are a list, because notebooks align the cells of a table to the right, and a style in each
# cell would be most of a saved output.
_MAX_DIAGRAMS = 6  # that one report shows
_TAGS = {"batched": "b", "tiled": "b", "looped": "i"}  # by what a vmap does


def to_html(
    recording: Recording | View,
    *,
    values: bool = False,
    times: bool = False,
    is_open: bool = False,
) -> Html:
    """Return a one-line summary that expands to the table of call sites, without scripts.

    Args:
        recording: the recording to report.
        values: include the sample values.
        times: include the time in host functions, and what the workers of an executor did. Without
            it, equal programs give equal HTML.
        is_open: expand it.

    Returns:
        HTML; empty when nothing was called, compiled or elided.
    """
    shown = view(recording)
    recording, sites = shown.recording, shown.sites
    if not sites:
        words = shown.headline_words(times)
        return element("p", words, class_="jaxcb") if words else html()
    items = [_item(summary, values, times) for summary in sites[:MAX_SITES]]
    notes = (left_out(sites), full_words(recording))
    notes += tuple(by_other_threads(recording)) if times else ()
    more = [element("p", text) for text in notes if text]
    drawn = _diagrams(sites[:MAX_SITES])
    # Opened where the summary line leaves something out: a viewer of saved notebooks may
    # show nothing else of the host trace, and its readers do not look into closed details.
    summary = element("summary", shown.headline_words(times))
    parts = (element("ul", *items), *more, *drawn)
    is_open = is_open or bool(drawn) or _has_more(sites)
    return element("details", summary, *parts, class_="jaxcb", open=is_open)


def _has_more(sites: list[SiteSummary]) -> bool:
    """Whether some call site has a status to explain, a note or an error."""
    return any(one.advice or one.notes or one.errors for one in sites)


def _item(summary: SiteSummary, values: bool, times: bool) -> Html:
    """Return a call site: its place, status, calls and shapes, then what is to be said about it."""
    lines: list[str] = [
        between(
            " · ",
            (
                *(() if number else _head(summary)),
                count,
                element("code", shapes) if vmaps or number or len(summary.shapes) == 1 else shapes,
                vmaps,
                time,
            ),
        )
        for number, (count, shapes, vmaps, time) in enumerate(summary.lines(times))
    ]
    lines += summary.remarks(times)
    lines += summary.samples if values else []
    lines += [element("strong", f"{SIGNS['raised']} {error}") for error in summary.errors]
    return element("li", between(element("br"), lines))


def _head(summary: SiteSummary) -> tuple[Html, str]:
    """Return place and source line of a call site, and its status."""
    where = summary.where.replace("line ", "line\xa0").replace("another cell", "another\xa0cell")
    place = html(where, " ", code(summary.source))
    status = f"{SIGNS[summary.consequence]} {summary.status_words}"
    if summary.consequence == Status.KEPT:
        return place, ""
    return place, status if summary.consequence == "not_needed" else element("strong", status)


def code(source: str, width: int = SOURCE_WIDTH) -> Html:
    """Return a line of code, with the whole line as a tooltip if it is cut."""
    cut = shorten(source, width)
    return element("code", cut, title=source if cut != source else None)


def _diagrams(sites: Sequence[SiteSummary]) -> list[Html]:
    """Return the vmap diagrams of `sites` as tables, equal ones once, `_MAX_DIAGRAMS` at most.

    Above each stand the number of its calls and its call sites.
    """
    drawn: dict[tuple[str, str, Html], dict[str, None]] = {}
    for summary in sites:
        for variant in summary.drawn:
            if variant.diagram:
                key = (variant.elements, variant.methods, _table(variant.diagram))
                drawn.setdefault(key, {})[f"{summary.site.function}, {summary.where}"] = None
    return [
        html(element("p", element("strong", words), f" · {'; '.join(names)} · {methods}"), table)
        for (words, methods, table), names in list(drawn.items())[:_MAX_DIAGRAMS]
    ]


def _table(diagram: DiagramView) -> Html:
    heads = ("", *diagram.vmaps, OWN_AXES, diagram.receives)
    body = [_row(row) for row in diagram.rows]
    if diagram.results:
        # An empty cell for each column, because some viewers drop colspan.
        empty = [element("td")] * (len(heads) - 1)
        body.insert(-diagram.results, element("tr", *empty, element("th", MUST_RETURN)))
    return element("table", element("tr", *(element("th", head) for head in heads)), *body)


def _row(row: RowView) -> Html:
    own = str(row.own) if row.own else "scalar"
    host = element("code", f"{row.host} {row.dtype}".rstrip())
    cells = (element("code", row.name), *map(_axis, row.axes), own, host)
    return element("tr", *(element("td", cell) for cell in cells))


def _axis(axis: AxisView) -> str:
    size = "" if axis.kind in ("size1", "unbatched") else f"{axis.size:,} "
    words, tag = f"{size}{AXES[axis.kind]}", _TAGS.get(axis.kind)
    return element(tag, words) if tag else words
