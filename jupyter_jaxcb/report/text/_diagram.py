"""The vmap diagram as a plain HTML table, for readers without styles and scripts.

A code host's notebook viewer removes both, so the table carries everything in words. The front end
draws the same in `labextension/src/view/sites/batching-axes.ts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from ...recording import Aval, VmapLevel
from ..summary import Shapes, SiteSummary

MAX_DIAGRAMS = 6  # that one report shows
_MAX_ROWS = 16  # operands and results of one diagram
_MAX_LEVELS = 8


class _Row(NamedTuple):
    """An operand or a result, with its axis under each vmap."""

    name: str
    axes: tuple[str, ...]  # outermost vmap first
    own: tuple[int, ...]  # the shape without any vmap
    host: tuple[int, ...]  # the shape in one host call


def diagrams(sites: Sequence[SiteSummary]) -> list[str]:
    """Return the vmap diagrams of `sites` as HTML tables, equal ones once.

    Args:
        sites: the rows of a report.

    Returns:
        At most `MAX_DIAGRAMS` tables, each below a line that names its call sites. A variant
        without vmap has no diagram.
    """
    drawn: dict[tuple[str, str], list[str]] = {}  # call sites by method and table
    for summary in sites:
        for shapes in summary.shapes:
            table = _table(shapes)
            if table:
                methods = ", ".join(dict.fromkeys(v.method for v in shapes.levels[::-1]))
                names = drawn.setdefault((methods, table), [])
                name = f"{summary.site.function}, {summary.where}"
                if name not in names:
                    names.append(name)
    return [
        f"<p>vmap in {escape('; '.join(names))}: {escape(methods)}</p>{table}"
        for (methods, table), names in list(drawn.items())[:MAX_DIAGRAMS]
    ]


def _table(shapes: Shapes) -> str:
    """The diagram of one variant; empty where there is no vmap, or too much to draw."""
    levels = shapes.levels[::-1]
    rows = _rows(shapes, levels) if levels else None
    if not rows or len(rows) > _MAX_ROWS or len(levels) > _MAX_LEVELS:
        return ""
    heads = ("", *_level_heads(levels), "own axes", "host function sees")
    header = "".join(f"<th>{head}</th>" for head in heads)
    body = "".join(
        f"<tr><td>{row.name}</td>"
        + "".join(f"<td>{axis}</td>" for axis in row.axes)
        + f"<td>{row.own if row.own else 'scalar'}</td><td><code>{row.host}</code></td></tr>"
        for row in rows
    )
    return f"<table><thead><tr>{header}</tr></thead><tbody>{body}</tbody></table>"


def _level_heads(levels: Sequence[VmapLevel]) -> list[str]:
    heads = [f"vmap {level.size}" for level in levels]
    if len(heads) > 1:
        heads[0] += " (outermost)"
        heads[-1] += " (innermost)"
    return heads


def _rows(shapes: Shapes, levels: Sequence[VmapLevel]) -> list[_Row] | None:
    """One row for each operand and result; None where shapes and vmaps do not fit each other."""
    operands = shapes.operands
    if any(len(level.batched) != len(operands) for level in levels):
        return None
    rows = [
        _row(
            _numbered("operand", place, operands), aval, levels, [v.batched[place] for v in levels]
        )
        for place, aval in enumerate(operands)
    ]
    rows += [
        _row(_numbered("result", place, shapes.results), aval, levels, [True] * len(levels))
        for place, aval in enumerate(shapes.results)
    ]
    found = [row for row in rows if row is not None]
    return found if len(found) == len(rows) else None


def _numbered(word: str, place: int, avals: Sequence[Aval]) -> str:
    return word if len(avals) == 1 else f"{word} {place + 1}"


def _row(
    name: str, aval: Aval, levels: Sequence[VmapLevel], batched: Sequence[bool]
) -> _Row | None:
    host = tuple(aval.shape)
    axes, seen = [], 0  # axes of the host's array so far
    for level, is_batched in zip(levels, batched, strict=True):
        found = _axis(level, is_batched)
        if found is None:
            return None
        words, size = found
        axes.append(words)
        if size is not None:
            if host[seen : seen + 1] != (size,):
                return None
            seen += 1
    return _Row(name, tuple(axes), host[seen:], host)


def _axis(level: VmapLevel, is_batched: bool) -> tuple[str, int | None] | None:
    """Words for one axis, and its size in the host's array; None: the host has no such axis."""
    if level.looped:
        return (f"{level.size}, looped over", None) if is_batched else ("unbatched", None)
    if is_batched:
        return f"{level.size}, batched", level.size
    unbatched = {
        "expand_dims": ("1, size-1 axis", 1),
        "broadcast_all": (f"{level.size}, tiled", level.size),
        "legacy_vectorized": ("unbatched", None),
    }
    return unbatched.get(level.method)
