"""Render a recording as static HTML, for notebooks without the front end."""

from __future__ import annotations

from html import escape

from ...recording import Recording
from ..summary import SiteSummary, summarize
from ._diagram import diagrams
from ._headline import headline_words
from ._phrases import SIGNS, TONES
from ._words import (
    MAX_SITES,
    count_words,
    full_words,
    left_out,
    note,
    sample_words,
    shape_words,
    shorten,
    status_words,
    variant_words,
)
from ._workers import by_worker

# The colours are JupyterLab's variables, with fallbacks for pages without them. Word and sign give
# the status; the colour only repeats it. Doubled class names override JupyterLab's rules for
# tables in outputs.
STYLE = """<style>
.jaxcb{font:var(--jp-code-font-size,13px)/1.5 var(--jp-code-font-family,monospace);
color:var(--jp-content-font-color1,inherit);margin:2px 0;overflow-x:auto}
.jaxcb summary{cursor:pointer;white-space:pre-wrap}
.jaxcb.jaxcb table{border-collapse:collapse;margin:4px 0 4px 1.2em;font:inherit}
.jaxcb.jaxcb tr{background:none}
.jaxcb.jaxcb th,.jaxcb.jaxcb td{text-align:left;vertical-align:top;padding:1px 14px 1px 0;border:0;
white-space:pre}
.jaxcb.jaxcb td:first-child{white-space:normal;max-width:9em}
.jaxcb.jaxcb td:last-child{white-space:pre-wrap}
.jaxcb.jaxcb th{font-weight:normal;color:var(--jp-content-font-color2,#616161)}
.jaxcb.jaxcb .jaxcb-note td{padding-left:1.2em;white-space:normal;max-width:60em;
color:var(--jp-content-font-color2,#616161)}
.jaxcb .jaxcb-kept{color:var(--jp-success-color1,#2e7d32)}
.jaxcb .jaxcb-warning{color:var(--jp-warn-color0,#9a5b00)}
.jaxcb .jaxcb-quiet{color:var(--jp-content-font-color2,#616161)}
.jaxcb .jaxcb-error,.jaxcb.jaxcb .jaxcb-note .jaxcb-error{color:var(--jp-error-color1,#c62828)}
</style>"""


def to_html(recording: Recording, *, values: bool = False, times: bool = False) -> str:
    """Return a one-line summary that expands to the table of call sites, without scripts.

    Args:
        recording: the recording to report.
        values: include the sample values.
        times: include what the workers of an executor did. Without it, equal programs give equal
            HTML.

    Returns:
        HTML; empty when nothing was called, compiled or elided.
    """
    return sites_to_html(recording, summarize(recording), values=values, times=times)


def sites_to_html(
    recording: Recording, sites: list[SiteSummary], *, values: bool, times: bool = False
) -> str:
    """As `to_html`, for a recording whose `sites` are already summarized."""
    if not sites:
        return ""
    header = "".join(
        f"<th>{word}</th>" for word in ("where", "source", "status", "calls", "host shapes")
    )
    rows = "".join(_rows(summary, values) for summary in sites[:MAX_SITES])
    notes = (left_out(sites), full_words(recording))
    notes += tuple(by_worker(recording)) if times else ()
    more = "".join(f"<p>{escape(text)}</p>" for text in notes if text)
    drawn = diagrams(sites[:MAX_SITES])
    # Opened where the summary line does not tell the whole story: a viewer of saved notebooks may
    # show nothing else of the host trace, and its readers do not look into closed details.
    is_open = " open" if drawn or _has_more(sites) else ""
    return (
        f'{STYLE}<details class="jaxcb"{is_open}>'
        f"<summary>{escape(headline_words(sites, times=False))}</summary>"
        f"<table><thead><tr>{header}</tr></thead><tbody>{rows}</tbody></table>{more}"
        f"{''.join(drawn)}</details>"
    )


def _has_more(sites: list[SiteSummary]) -> bool:
    """Whether some call site has a status to explain, a note or an error."""
    return any(note(one) or one.notes or one.errors for one in sites)


def _rows(summary: SiteSummary, values: bool) -> str:
    rows = []
    for place, shapes in enumerate(summary.shapes or (None,)):
        where, source, status = "", "", ""
        shape_lines = (shape_words(shapes, summary.shapes), variant_words(shapes)) if shapes else ()
        if place == 0:
            where = escape(summary.where).replace("line ", "line&nbsp;")
            where = where.replace("another cell", "another&nbsp;cell")
            full = summary.source
            source = f'<span title="{escape(full)}">{escape(shorten(full))}</span>'
            signed = f"{SIGNS[summary.consequence]} {status_words(summary)}".rstrip()
            status = f'<span class="jaxcb-{TONES[summary.consequence]}">{signed}</span>'
        cells = (
            where,
            source,
            status,
            count_words(summary, shapes) if place == 0 or not summary.ahead else "",
            "<br>".join(map(escape, filter(None, shape_lines))),
        )
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    for kind, text in (
        ("note", note(summary)),
        *(("note", text) for text in summary.notes),
        *(("note", sample_words(*sample)) for sample in (summary.sample_values if values else ())),
        *(("error", e) for e in summary.errors),
    ):
        if text:
            rows.append(
                f'<tr class="jaxcb-note"><td></td><td colspan="4" class="jaxcb-{kind}">'
                f"{escape(text)}</td></tr>"
            )
    return "".join(rows)
