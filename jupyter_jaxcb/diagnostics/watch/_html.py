"""What a block saw, as HTML that needs no script: a table by line, with a plot of each variable."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...recording import Html, compact_css, element, html
from ..notes import MOST_ELEMENTS
from ._first_bad import Bad, Mark
from ._series import Series
from ._text import COLUMNS, cells, curve, label, place, thinned

_SMALL, _LARGE, _OWN = (120, 18), (400, 130), (400, 50)
_PLOT = "jaxcb-plot-"
_TEXT, _OF_TEXT = "jaxcb-watch-text", (1, 2, 9)  # the columns of text
_TITLES: dict[Mark, str] = {
    "first": "the first bad value",
    "later": "bad after the first bad value",
}


class Spot(NamedTuple):
    """The line of an element of class ``jaxcb-place``, which are in the order of the spots."""

    file: str
    line: int
    source: str  # the line, stripped; empty: unknown


def page(
    marked: Sequence[tuple[Series, Mark]],
    bad: Bad | None,
    notes: Sequence[str],
    above: str = "",
) -> tuple[Html, list[Spot]]:
    """Return the table, with the sentence about the first bad value above it, and its places.

    Args:
        marked: the variables, and which of them are bad, see `marks`.
        bad: the first bad value.
        notes: sentences below the table.
        above: text above all; empty: none.
    """
    spots = [Spot(bad.file, bad.line, "")] if bad else []
    sentence = bad and _place(str(bad), bad)
    tables = []
    for file in dict.fromkeys(one.file for one, _ in marked):
        rows = [pair for pair in marked if pair[0].file == file]
        tables.append(_table(file, rows))
        spots += [Spot(one.file, one.line, one.source) for one, _ in rows]
    shown = element(
        "div",
        element("style", compact_css(__name__, "watch.css")),
        element("div", above, class_="jaxcb-watch-above", role="status") if above else None,
        element("div", sentence, class_="jaxcb-watch-first", role="alert") if bad else None,
        *tables,
        *(element("div", note) for note in notes),
        class_="jaxcb-watch",
    )
    return shown, spots


def _place(words: str, at: Bad | Series) -> Html:
    """Return words about a line, of which JupyterLab makes a link."""
    return element("span", words, class_="jaxcb-place", title=place(at.file, at.line))


def _table(file: str, rows: Sequence[tuple[Series, Mark]]) -> Html:
    titles = (
        element("th", title, scope="col", class_=_TEXT if column in _OF_TEXT else None)
        for column, title in enumerate((*COLUMNS, "mean by step"))
    )
    caption = element("caption", label(file), class_=_TEXT)
    head = element("thead", element("tr", *titles))
    return element("table", caption, head, element("tbody", *(_row(*row) for row in rows)))


def _row(one: Series, mark: Mark) -> Html:
    line, name, shape, *numbers = cells(one)
    filled = (
        element("td", text, class_="jaxcb-watch-count" if column in (4, 5) and text else None)
        for column, text in enumerate(numbers)
    )
    return element(
        "tr",
        element("td", _place(line, one)),
        element("td", element("code", name), class_=_TEXT, title=one.source),
        element("td", shape, class_=_TEXT),
        *filled,
        element("td", _plots(one), class_=_TEXT),
        class_=f"jaxcb-watch-{mark}" if mark else None,
        title=_TITLES.get(mark),
    )


def _plots(one: Series) -> Html:
    """Return the small plot, and the large one that a click opens."""
    if len(one.mean) < 2:
        return html()
    words = f"mean of {one.name} over {one.count:,} steps"
    small = element("summary", _plot(one, *_SMALL, False), aria_label=words)
    return element("details", small, _plot(one, *_LARGE, True), *_own_plots(one))


def _own_plots(one: Series) -> list[Html]:
    """Return a plot of each number of the user."""
    none, no_values = np.zeros_like(one.nan), np.empty((len(one.mean), 0, 0))
    plots = []
    for name, values in one.own.items():
        own = dataclasses.replace(
            one,
            mean=values,
            min=values,
            max=values,
            nan=none,
            inf=none,
            values=no_values,  # those of the variable
            own={},
        )
        plots += [element("div", name), _plot(own, *_OWN, True)]
    return plots


def _each(one: Series) -> list[np.ndarray]:
    """Return the curve of each value of a small array; else that of each batch element."""
    each = one.values if one.values.size else one.mean
    curves = each.reshape(len(each), -1).T
    return [_finite(curve) for curve in curves] if 1 < len(curves) <= MOST_ELEMENTS else []


def _plot(one: Series, width: int, height: int, is_large: bool) -> Html:
    middle = thinned(curve(one), width)
    low = thinned(_finite(one.min).min(axis=1), width)
    high = thinned(_finite(one.max).max(axis=1), width)
    each = [thinned(curve, width // 4) for curve in _each(one)]
    known = np.concatenate([middle, low, high] if is_large else [middle])
    known = known[np.isfinite(known)]
    bottom, top = (known.min(), known.max()) if len(known) else (0.0, 1.0)
    if top == bottom:  # a constant is in the middle, not on the edge
        margin = abs(bottom) / 10 or 0.5
        bottom, top = bottom - margin, top + margin

    def points(values: np.ndarray) -> list[tuple[float, float]]:
        x = np.linspace(0, width, len(values))
        y = height - (np.clip(values, bottom, top) - bottom) / (top - bottom) * height
        return [(a, b) for a, b in zip(x, y, strict=True) if np.isfinite(b)]

    parts = []
    if is_large:
        band = [*points(low), *reversed(points(high))]
        parts.append(element("polygon", class_=_PLOT + "band", points=_text(band)))
        for curve_of_one in each:
            parts.append(
                element("polyline", class_=_PLOT + "each", points=_text(points(curve_of_one)))
            )
    parts.append(element("polyline", class_=_PLOT + "line", points=_text(points(middle))))
    for first, last in _runs(~np.isfinite(middle)):
        x = [place / max(1, len(middle) - 1) * width for place in (first - 0.5, last + 0.5)]
        size = {"x": f"{x[0]:.1f}", "width": f"{x[1] - x[0]:.1f}", "y": 0, "height": height}
        parts.append(
            element("rect", element("title", "NaN or infinite"), class_=_PLOT + "nan", **size)
        )
    if is_large:
        ends = f"step {_step(one, 0)}", f"step {_step(one, -1)}"
        parts += [
            element("text", f"{top:.4g}", class_=_PLOT + "axis", x=0, y=10),
            element("text", f"{bottom:.4g}", class_=_PLOT + "axis", x=0, y=height - 2),
            element("text", ends[0], class_=_PLOT + "axis", x=0, y=height + 13),
            element(
                "text", ends[1], class_=_PLOT + "axis", x=width, y=height + 13, text_anchor="end"
            ),
        ]
    size = {"width": width, "height": height + 16 * is_large}
    box = f"0 0 {size['width']} {size['height']}"
    return element("svg", *parts, viewBox=box, preserveAspectRatio="none", **size)


def _runs(holds: np.ndarray) -> list[tuple[int, int]]:
    """Return the first and the last place of each run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], holds, [False]]).astype(int)))
    return [(int(a), int(b) - 1) for a, b in edges.reshape(-1, 2)]


def _finite(x: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(x), x, np.nan)


def _step(one: Series, place: int) -> str:
    steps = one.steps[place] if one.steps.shape[1] else [place % max(1, one.count)]
    return ", ".join(map(str, steps))


def _text(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
