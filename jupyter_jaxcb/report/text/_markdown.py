"""Render a recording as Markdown, for an issue or a chat."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from ...recording import Recording, visible
from ..summary import (
    MAX_SITES,
    SIGNS,
    SiteSummary,
    full_words,
    left_out,
    out_of_order,
    shorten,
)
from ._headline import error_line, view
from ._other_threads import by_other_threads

_HEAD = ("where", "source", "status", "calls", "shapes of one call", "host time")
_LONGEST = 200  # characters of a line of code, or of an error
_MOST_SHAPES = 3  # described for one call site
# What is markup on a line, or at its beginning, or makes an address a link.
_MARKUP = re.compile(r"[\\`*_\[\]<>#&~$@]|:(?=//)|(?<=[Ww]{3})\.|^[-+](?= )|(?<=^\d)[.)](?= )")


def to_markdown(recording: Recording) -> str:
    """Return a summary line, a table of call sites, and what there is to say about each.

    Returns:
        Text without a final newline; empty when nothing was called, compiled or elided.
    """
    shown = view(recording)
    sites = shown.sites
    if not sites:
        return plain_words(shown.headline_words(times=False))
    listed = sites[:MAX_SITES]
    more = left_out(sites), full_words(recording)
    about = (*more, *by_other_threads(recording), *out_of_order(recording, sites))
    remarks = [remark for site in listed for remark in _remarks(site)]
    parts = (
        plain_words(shown.headline_words(times=True)),
        table(_HEAD, map(_cells, listed)),
        "\n".join(f"* {line}" for line in (*remarks, *map(plain_words, filter(None, about)))),
    )
    return "\n\n".join(filter(None, parts))


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose cells are Markdown. A bar would end a cell, even in code."""
    cells = ([re.sub(r"(\\*)\|", _bar, cell) for cell in row] for row in rows)
    lines = (head, ["---"] * len(head), *cells)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _bar(found: re.Match[str]) -> str:
    """Escape a bar; two backslashes before it, of which one is of code, would end the cell."""
    return f"{found[1]}{' ' * (len(found[1]) % 2)}\\|"


def plain_words(text: str) -> str:
    """Return `text` on one line, in which nothing is markup, a link, a formula or a mention."""
    return _MARKUP.sub(r"\\\g<0>", " ".join(visible(text).split()))


def code_span(text: str) -> str:
    """Return `text` on one line, as a code span."""
    line = shorten(" ".join(visible(text).split()), _LONGEST)
    ticks = max(map(len, re.findall("`+", line)), default=0)
    pad, fence = " " * bool(ticks), "`" * (ticks + 1)
    return f"{fence}{pad}{line}{pad}{fence}" if line else ""


def _cells(site: SiteSummary) -> list[str]:
    views = site.variants
    variants = [
        " ".join(filter(None, (code_span(view.shapes), plain_words(view.words)))) for view in views
    ]
    return [
        plain_words(site.where),
        code_span(site.source),
        site.status_words,
        site.count,
        f"{len(views):,} shapes" if len(views) > _MOST_SHAPES else "<br>".join(variants),
        site.time,
    ]


def _remarks(site: SiteSummary) -> list[str]:
    """Return reason and advice, notes and errors of a call site."""
    words = [plain_words(one) for one in site.remarks(times=True)]
    words += [f"{SIGNS['raised']} {code_span(error_line(error))}" for error in site.errors]
    return [f"{plain_words(site.where)}: {one}" for one in words]
