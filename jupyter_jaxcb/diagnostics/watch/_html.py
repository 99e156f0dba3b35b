"""What a block saw, as HTML that needs no script: a table by line, with a plot of each variable."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from ...recording import Html, element, html
from ..notes import MOST_ELEMENTS
from ._series import Series
from ._text import COLUMNS, cells, curve, label, thinned

_STYLE = """
.jaxcb-watch{font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:12px;\
color:var(--jp-ui-font-color1,inherit)}
.jaxcb-watch table{border-collapse:collapse}
.jaxcb-watch td,.jaxcb-watch th{padding:1px 8px;text-align:right;white-space:nowrap;\
vertical-align:top}
.jaxcb-watch th{font-weight:600;color:var(--jp-ui-font-color2,inherit)}
.jaxcb-watch td.text,.jaxcb-watch th.text,.jaxcb-watch caption.text{text-align:left}
.jaxcb-watch td.text code{font-family:var(--jp-code-font-family,monospace);background:none;\
color:inherit;white-space:nowrap;padding:0}
.jaxcb-watch .bad{color:var(--jp-error-color1,#c62828);font-weight:600}
.jaxcb-watch summary{cursor:pointer;list-style:none}
.jaxcb-watch svg{vertical-align:middle;max-width:none}
.jaxcb-watch details > svg{display:block;margin:6px 0 6px -280px}
.jaxcb-watch details > div{margin-left:-280px}
.jaxcb-watch .line{stroke:var(--jp-brand-color1,#1976d2);fill:none;stroke-width:1.2}
.jaxcb-watch .each{stroke:var(--jp-brand-color1,#1976d2);fill:none;stroke-width:.8;opacity:.6}
.jaxcb-watch .band{fill:var(--jp-brand-color1,#1976d2);opacity:.18}
.jaxcb-watch .nan{fill:var(--jp-error-color1,#c62828);opacity:.3}
.jaxcb-watch .axis{fill:var(--jp-ui-font-color2,#666);font-size:10px;
stroke:var(--jp-layout-color1,Canvas);stroke-width:3px;paint-order:stroke}
"""
_SMALL, _LARGE, _OWN = (120, 18), (400, 130), (400, 50)


def page(series: Sequence[Series], bad: object, notes: Sequence[str]) -> Html:
    """Return the table, with the sentence about the first bad value above it."""
    files = dict.fromkeys(one.file for one in series)
    return element(
        "div",
        element("style", _STYLE),
        None if bad is None else element("div", str(bad), class_="bad", role="alert"),
        *(_table(file, [one for one in series if one.file == file]) for file in files),
        *(element("div", note) for note in notes),
        class_="jaxcb-watch",
    )


def _table(file: str, series: Sequence[Series]) -> Html:
    titles = (
        element("th", title, scope="col", class_="text" if place in (1, 2, 9) else None)
        for place, title in enumerate((*COLUMNS, "mean by step"))
    )
    caption = element("caption", label(file), class_="text")
    head = element("thead", element("tr", *titles))
    return element("table", caption, head, *map(_row, series))


def _row(one: Series) -> Html:
    line, name, shape, *numbers = cells(one)
    filled = (
        element("td", text, class_="bad" if place in (4, 5) and text else None)
        for place, text in enumerate(numbers)
    )
    return element(
        "tr",
        element("td", line),
        element("td", element("code", name), class_="text", title=one.source),
        element("td", shape, class_="text"),
        *filled,
        element("td", _plots(one), class_="text"),
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
        parts.append(element("polygon", class_="band", points=_text(band)))
        for curve_of_one in each:
            parts.append(element("polyline", class_="each", points=_text(points(curve_of_one))))
    parts.append(element("polyline", class_="line", points=_text(points(middle))))
    for first, last in _runs(~np.isfinite(middle)):
        x = [place / max(1, len(middle) - 1) * width for place in (first - 0.5, last + 0.5)]
        size = {"x": f"{x[0]:.1f}", "width": f"{x[1] - x[0]:.1f}", "y": 0, "height": height}
        parts.append(element("rect", element("title", "NaN or infinite"), class_="nan", **size))
    if is_large:
        ends = f"step {_step(one, 0)}", f"step {_step(one, -1)}"
        parts += [
            element("text", f"{top:.4g}", class_="axis", x=0, y=10),
            element("text", f"{bottom:.4g}", class_="axis", x=0, y=height - 2),
            element("text", ends[0], class_="axis", x=0, y=height + 13),
            element("text", ends[1], class_="axis", x=width, y=height + 13, text_anchor="end"),
        ]
    return element("svg", *parts, width=width, height=height + 16 * is_large)


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
