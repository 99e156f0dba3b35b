"""The vmap diagram as an HTML table.

Its contents are those of the front end's (`labextension/src/view/sites/batching.ts`). A table and
not an SVG, because many readers of saved notebooks see sanitized HTML: JupyterLab's sanitizer
removes SVG elements but keeps their texts as one run of words, and nbconvert's shows an SVG as
source text. No cell has a style, which would be most of a saved output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...recording import Aval, AxisKind, Html, VmapLevel, element, html
from ..summary import Shapes, SiteSummary, call_words, counted
from . import _phrases
from ._mask import mask_words
from ._words import call_shapes, stopped_words

MAX_DIAGRAMS = 6  # that one report shows
_MAX_ROWS = 16  # operands and results of one diagram
_MAX_LEVELS = 8

_ELEMENTS = {"batched": "b", "tiled": "b", "looped": "i"}  # by what a vmap does


class _Axis(NamedTuple):
    """How one vmap treats an operand or a result."""

    kind: AxisKind
    size: int


class _Row(NamedTuple):
    """An operand or a result, with its axis under each vmap."""

    name: str
    axes: tuple[_Axis, ...]  # outermost vmap first
    own: tuple[int, ...]  # the shape without any vmap
    host: str  # shape and dtype in one host call


def diagrams(sites: Sequence[SiteSummary]) -> list[Html]:
    """Return the vmap diagrams of `sites` as HTML tables, equal ones once.

    Args:
        sites: the rows of a report.

    Returns:
        At most `MAX_DIAGRAMS` tables, each below a line that counts its calls and names its call
        sites. A variant without vmap has no diagram.
    """
    drawn: dict[tuple[str, str, Html], list[str]] = {}  # call sites by sentence, method and table
    for summary in sites:
        for shapes in summary.shapes:
            table = _table(shapes)
            if table:
                methods = ", ".join(dict.fromkeys(v.method for v in shapes.levels[::-1]))
                names = drawn.setdefault((element_words(shapes), methods, table), [])
                name = f"{summary.site.function}, {summary.where}"
                if name not in names:
                    names.append(name)
    return [
        html(element("p", element("strong", words), f" · {'; '.join(names)} · {methods}"), table)
        for (words, methods, table), names in list(drawn.items())[:MAX_DIAGRAMS]
    ]


def element_words(shapes: Shapes) -> str:
    """Say how batch elements are spread over calls: ``1 call for 12 elements (4 × 3)``.

    As `elementWords` of the front end, whose tests list the cases.
    """
    if shapes.mask is not None:
        return mask_words(shapes.calls, shapes.mask)
    outermost_first = shapes.levels[::-1]
    looped = [level.size for level in outermost_first if level.looped]
    together = [level.size for level in outermost_first if not level.looped]
    at_once = shapes.each_time
    elements = f"{counted(math.prod(together), 'element')}{_factors(together)}"
    if at_once == 0:
        return _phrases.EMPTY_BATCH
    if at_once == 1 and shapes.calls <= 1:
        words = _phrases.ONE_CALL.format(elements=elements)
        return words if shapes.calls else _phrases.EACH_TIME.format(words=words)
    made = _calls_made(shapes.calls, at_once, _factors(looped), bool(shapes.stopped))
    if together or at_once == 1:
        made = _phrases.EACH_FOR.format(calls=made, elements=elements)
    elif not shapes.stopped or shapes.calls >= at_once:
        made = _phrases.ONE_FOR_EACH.format(calls=made)
    return "; ".join(filter(None, (made, stopped_words(shapes))))


def _calls_made(calls: int, at_once: int, factors: str, stopped: bool) -> str:
    if stopped and calls < at_once:
        of = f"{call_words(at_once)}{factors}"
        return _phrases.SOME_OF.format(some=f"{calls:,}", calls=of)
    if calls == 0:
        return _phrases.EACH_TIME.format(words=f"{call_words(at_once)}{factors}")
    if calls == at_once or at_once == 1:
        return f"{call_words(calls)}{factors}"
    return _phrases.SOME_EACH_TIME.format(calls=call_words(calls), some=f"{at_once:,}{factors}")


def _factors(sizes: Sequence[int]) -> str:
    return f" ({' × '.join(f'{size:,}' for size in sizes)})" if len(sizes) > 1 else ""


def _table(shapes: Shapes) -> Html:
    """The diagram of one variant; empty where there is no vmap, or too much to draw."""
    levels = shapes.levels[::-1]
    rows = _rows(shapes, levels) if levels else None
    if not rows or len(rows) > _MAX_ROWS or len(levels) > _MAX_LEVELS:
        return html()
    one = math.prod(level.size for level in levels if level.looped) == 1
    receives = _phrases.ONE_RECEIVES if one else _phrases.EACH_RECEIVES
    heads = ("", *_level_heads(levels), _phrases.OWN_AXES, receives)
    header = element("tr", *(element("th", head) for head in heads))
    split = len(shapes.operands) + (shapes.mask is not None)
    body = [_row_html(row) for row in rows]
    if rows[split:]:
        # An empty cell for each column, because some viewers drop colspan.
        empty = [element("td")] * (len(heads) - 1)
        body.insert(split, element("tr", *empty, element("th", _phrases.MUST_RETURN)))
    return element("table", header, *body)


def _level_heads(levels: Sequence[VmapLevel]) -> list[str]:
    heads = [_phrases.VMAP.format(size=f"{level.size:,}") for level in levels]
    if len(heads) > 1:
        heads[0] += f" ({_phrases.OUTERMOST})"
        heads[-1] += f" ({_phrases.INNERMOST})"
    return heads


def _row_html(row: _Row) -> Html:
    own = str(row.own) if row.own else "scalar"
    axes = map(_axis_html, row.axes)
    cells = (element("code", row.name), *axes, own, element("code", row.host))
    return element("tr", *(element("td", cell) for cell in cells))


def _axis_html(axis: _Axis) -> str:
    size = "" if axis.kind in ("size1", "unbatched") else f"{axis.size:,} "
    words = f"{size}{_phrases.AXES[axis.kind]}"
    tag = _ELEMENTS.get(axis.kind)
    return element(tag, words) if tag else words


def _rows(shapes: Shapes, levels: Sequence[VmapLevel]) -> list[_Row] | None:
    """One row for each operand and result; None where shapes and vmaps do not fit each other."""
    operands, results = shapes.operands, shapes.results
    if any(len(level.batched) != len(operands) for level in levels):
        return None
    given, returned = call_shapes(shapes)
    named = zip(_named(_phrases.ARGUMENT, operands, shapes.operand_names), operands, strict=True)
    rows = [
        _row(name, aval, given[place], levels, [v.batched[place] for v in levels])
        for place, (name, aval) in enumerate(named)
    ]
    rows += [
        _row(name, aval, words, levels, [True] * len(levels))
        for name, aval, words in zip(
            _named(_phrases.RESULT, results, shapes.result_names), results, returned, strict=True
        )
    ]
    if shapes.mask is not None:
        axes = tuple(filter(None, map(_axis, levels, shapes.mask.batched[::-1])))
        rows.insert(len(operands), _Row(_phrases.MASK, axes, (), _phrases.NOT_PASSED))
    found = [row for row in rows if row is not None]
    return found if len(found) == len(rows) else None


def _named(word: str, avals: Sequence[Aval], names: Sequence[str]) -> Sequence[str]:
    """Return the names of `avals`; number them if there are no names."""
    if len(names) == len(avals):
        return names
    return [word] if len(avals) == 1 else [f"{word} {place + 1}" for place in range(len(avals))]


def _row(
    name: str, aval: Aval, host_words: str, levels: Sequence[VmapLevel], batched: Sequence[bool]
) -> _Row | None:
    host = tuple(aval.shape)
    axes, seen = [], 0  # axes of the host's array so far
    for level, is_batched in zip(levels, batched, strict=True):
        axis = _axis(level, is_batched)
        if axis is None:
            return None
        axes.append(axis)
        if axis.kind.is_of_host:
            if host[seen : seen + 1] != (axis.size,):
                return None
            seen += 1
    return _Row(name, tuple(axes), host[seen:], f"{host_words} {aval.dtype}")


def _axis(level: VmapLevel, is_batched: bool) -> _Axis | None:
    """Return what a vmap does to an operand; None if that is unknown."""
    kind = level.vmap_method.axis(is_batched)
    if level.vmap_method.batched is AxisKind.IN_PLACE:
        return _Axis(AxisKind.BATCHED, level.size) if is_batched else None  # if it is in front
    return _Axis(kind, 1 if kind is AxisKind.SIZE1 else level.size)
