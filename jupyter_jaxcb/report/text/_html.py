"""Render a recording as static HTML, for notebooks without the front end."""

from __future__ import annotations

from ...recording import Html, Recording, Status, between, element, html
from ..summary import Shapes, SiteSummary, folded, summarize
from ._diagram import diagrams
from ._headline import headline_words
from ._other_threads import by_other_threads
from ._phrases import SIGNS
from ._timeline import timeline
from ._words import (
    MAX_SITES,
    SOURCE_WIDTH,
    count_words,
    full_words,
    left_out,
    one_shape,
    remarks,
    rows_of,
    sample_words,
    shapes_in_words,
    shorten,
    status_words,
    time_words,
    variant_words,
)

# Each output of a notebook is separate and must read well without style sheets, which code hosts
# remove, so there is none: elements carry the meaning (<strong> is a status other than kept). Call
# sites are a list, because notebooks align the cells of a table to the right, and a style in each
# cell would be most of a saved output.


def to_html(
    recording: Recording, *, values: bool = False, times: bool = False, is_open: bool = False
) -> Html:
    """Return a one-line summary that expands to the table of call sites, without scripts.

    Args:
        recording: the recording to report.
        values: include the sample values.
        times: include the time in host functions, what the workers of an executor did, and a small
            timeline. Without it, equal programs give equal HTML.
        is_open: expand it.

    Returns:
        HTML; empty when nothing was called, compiled or elided.
    """
    sites = folded(recording, summarize(recording))
    return sites_to_html(recording, sites, values=values, times=times, is_open=is_open)


def sites_to_html(
    recording: Recording,
    sites: list[SiteSummary],
    *,
    values: bool,
    times: bool = False,
    is_open: bool = False,
) -> Html:
    """As `to_html`, for a recording whose `sites` are already summarized."""
    if not sites:
        return html()
    items = [_item(summary, values, times) for summary in sites[:MAX_SITES]]
    notes = (left_out(sites), full_words(recording))
    notes += tuple(by_other_threads(recording)) if times else ()
    more = [element("p", text) for text in notes if text]
    drawn = diagrams(sites[:MAX_SITES])
    # Opened where the summary line leaves something out: a viewer of saved notebooks may
    # show nothing else of the host trace, and its readers do not look into closed details.
    summary = element("summary", headline_words(recording, sites, times))
    parts = (element("ul", *items), *more, *([timeline(recording)] if times else []), *drawn)
    is_open = is_open or bool(drawn) or _has_more(sites)
    return element("details", summary, *parts, class_="jaxcb", open=is_open)


def _has_more(sites: list[SiteSummary]) -> bool:
    """Whether some call site has a status to explain, a note or an error."""
    return any(one.advice or one.notes or one.errors for one in sites)


def _item(summary: SiteSummary, values: bool, times: bool) -> Html:
    """Return a call site: its place, status, calls and shapes, then what is to be said about it."""
    said = shapes_in_words(summary.shapes)
    words = dict(zip(summary.shapes, said, strict=True))
    lines: list[str] = []
    for shapes in rows_of(summary):
        of = shapes or summary
        parts = (
            *(() if lines else _head(summary)),
            "" if lines and summary.ahead else count_words(summary, shapes),
            _shapes(shapes, words[shapes]) if shapes else one_shape(said),
            time_words(of.host_ns) if times and of.calls else "",
        )
        lines.append(between(" · ", parts))
    samples = summary.sample_values if values else ()
    texts = (*remarks(summary, times), *(sample_words(*sample) for sample in samples))
    lines += texts
    lines += [element("strong", f"{SIGNS['raised']} {error}") for error in summary.errors]
    return element("li", between(element("br"), lines))


def _head(summary: SiteSummary) -> tuple[Html, str]:
    """Return place and source line of a call site, and its status."""
    where = summary.where.replace("line ", "line\xa0").replace("another cell", "another\xa0cell")
    place = html(where, " ", code(summary.source))
    status = f"{SIGNS[summary.consequence]} {status_words(summary)}"
    if summary.consequence == Status.KEPT:
        return place, ""
    return place, status if summary.consequence == "not_needed" else element("strong", status)


def code(source: str, width: int = SOURCE_WIDTH) -> Html:
    """Return a line of code, with the whole line as a tooltip if it is cut."""
    cut = shorten(source, width)
    return element("code", cut, title=source if cut != source else None)


def _shapes(shapes: Shapes, said: str) -> Html:
    return between(" · ", (element("code", said), variant_words(shapes)))
