"""`VariantView`: what every display says about one variant of a call site, and its vmap diagram.

The diagram is data. Static HTML prints it as a table (`_html`) and the front end as a grid. A
table and not an SVG, because many readers of saved notebooks see sanitized HTML: JupyterLab's
sanitizer removes SVG elements but keeps their texts as one run of words, and nbconvert's shows an
SVG as source text.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...recording import Aval, AxisKind, VmapLevel, calls_each_time
from ._counts import Stopped
from ._mask import Mask
from ._words import NOTHING, byte_words, call_words, counted

MAX_DEVICES = 8  # named for one variant
_ARGUMENTS = {  # under one vmap; listed unless all are batched
    AxisKind.BATCHED: "batched",
    AxisKind.TILED: "tiled",
    AxisKind.SIZE1: "size-1 axis",
    AxisKind.LOOPED: "batched",
    AxisKind.UNBATCHED: "unbatched",
    AxisKind.IN_PLACE: "batched",
}
_MAX_ARRAYS = 30  # of one variant that are listed
_MOST_ALIKE = 2  # that are listed one by one
_MAX_ROWS = 16  # operands and results of one diagram
_MAX_LEVELS = 8


class AxisView(NamedTuple):
    """What one ``vmap`` did to an array of a host call."""

    kind: AxisKind  # what became of its batch elements
    size: int  # of the axis that the host function gets, or loops over


class RowView(NamedTuple):
    """An operand or a result of a host call, as a row of the diagram."""

    name: str  # "x", "params['w']", "argument 2"
    axes: tuple[AxisView, ...]  # by vmap, outermost first
    own: tuple[int, ...]  # its shape without any vmap
    host: str  # its shape in one host call: "(4, 1, 5)"
    dtype: str  # empty: the host function does not get it


@dataclasses.dataclass(frozen=True)
class DiagramView:
    """How ``vmap`` changed the shapes: a row per operand and result, a column per ``vmap``."""

    vmaps: tuple[str, ...]  # heads of the columns: "vmap 4 (outermost)"
    receives: str  # head of the shapes in one host call: "each call receives"
    rows: tuple[RowView, ...]  # the results are last
    results: int  # how many of the rows are results


@dataclasses.dataclass(frozen=True)
class Shapes:
    """One variant of a call site: a combination of shapes and vmap levels."""

    operands: tuple[Aval, ...]  # as one host call sees them
    results: tuple[Aval, ...]
    levels: tuple[VmapLevel, ...]  # innermost vmap first
    calls: int  # host calls of this variant
    shards: int  # number of shards, each called by its device; 0: one call for all devices
    devices: tuple[str, ...]  # of the shards, in order, where known
    gathered_bytes: int  # at most, moved to the one device that makes the call
    lowered: tuple[int, ...]  # indices into `Recording.lowered`
    operand_names: tuple[str, ...] = ()  # empty if they are unknown, or not always the same
    result_names: tuple[str, ...] = ()
    mask: Mask | None = None  # None: its calls are not masked
    stopped: Stopped | None = None  # None: each crossing made all of its calls, or it is masked
    host_ns: int = 0  # in the host function, summed over calls

    @property
    def each_time(self) -> int:
        """The number of host calls of a complete crossing."""
        return calls_each_time(self.levels)


@dataclasses.dataclass(frozen=True, kw_only=True)
class VariantView:
    """One variant of a call site: a combination of shapes and vmap levels."""

    shapes: str  # of one host call: "(4,), (1,) → (4,)", with dtypes if others differ only in these
    arrays: str = ""  # with names and dtypes: "x (4,) float32 → (4,) float32"; empty: a diagram
    sizes: str = ""  # of the vmaps, outermost first, as factors; empty: none
    methods: str = ""  # of the vmaps, outermost first
    vmaps: str = ""  # "vmap 4 (batched, unbatched), sequential"; empty: none, or see the diagram
    elements: str = ""  # how batch elements are spread over calls: "1 call for 12 elements"
    stopped: str = ""  # "stopped at element 8"; empty: each crossing made all of its calls
    placed: str = ""  # "2 shards (cpu:0, cpu:1), gathers 4.1 kB"; empty: one call on one device
    count: str = ""  # "9 of 12 calls", of a crossing that stopped; empty: as many as `calls`
    calls: int = 0  # host calls
    needed: int = 0  # batch elements for which its mask was true
    batch: int = 0  # all batch elements of calls with a mask; 0: they have none, or none ran
    diagram: DiagramView | None = None  # absent: no vmap, or too much to draw

    @property
    def words(self) -> str:
        """Vmap levels, where it stopped, shards, bytes gathered for the call."""
        return ", ".join(filter(None, (self.vmaps, self.stopped, self.placed)))


def variant_views(variants: Sequence[Shapes]) -> tuple[VariantView, ...]:
    """Return the views of the variants of one call site, without what `drawn` adds."""
    said = [_arrow(*_call_shapes(variant)) for variant in variants]
    alike: dict[str, set[tuple]] = {}
    for words, variant in zip(said, variants, strict=True):
        alike.setdefault(words, set()).add((variant.operands, variant.results))
    return tuple(
        VariantView(
            shapes=words if len(alike[words]) == 1 else _with_dtypes(variant),
            vmaps=level_words(variant.levels),
            stopped=_stopped_words(variant),
            placed=_placed_words(variant),
            count=_count_words(variant),
            calls=variant.calls,
        )
        for variant, words in zip(variants, said, strict=True)
    )


def drawn(view: VariantView, variant: Shapes) -> VariantView:
    """Add what only a page has room for: arrays, batch elements, the diagram."""
    levels, mask = variant.levels[::-1], variant.mask  # outermost first
    return dataclasses.replace(
        view,
        arrays=_named_arrays(variant),
        sizes=" × ".join(str(level.size) for level in levels),
        methods=", ".join(dict.fromkeys(level.method for level in levels)),
        elements=_element_words(variant, levels) if levels else "",
        needed=mask.needed if mask else 0,
        batch=mask.elements if mask else 0,
        diagram=_diagram(variant, levels, _call_shapes(variant)),
    )


def one_shape(words: Iterable[str]) -> str:
    """Return the single distinct entry of `words`, or how many distinct entries there are."""
    shapes = list(dict.fromkeys(words))
    return f"{len(shapes):,} shapes" if shapes[1:] else "".join(shapes)


def _named_arrays(variant: Shapes) -> str:
    operands, results = (
        [f"{aval.shape} {aval.dtype}" for aval in avals]
        for avals in (variant.operands, variant.results)
    )
    if len(variant.operand_names) == len(operands):
        operands = list(map(" ".join, zip(variant.operand_names, operands, strict=True)))
    return _arrow(operands, results)


def _with_dtypes(variant: Shapes) -> str:
    return _arrow(map(str, variant.operands), map(str, variant.results))


def _arrow(operands: Iterable[str], results: Iterable[str]) -> str:
    return " → ".join(", ".join(_grouped(arrays)) or NOTHING for arrays in (operands, results))


def _grouped(arrays: Iterable[str]) -> list[str]:
    """Write three or more equal ones in a row as ``30 × ()``, and count what is too much."""
    groups = []
    for array, alike in itertools.groupby(arrays):
        count = len(list(alike))
        groups += [f"{count} × {array}"] if count > _MOST_ALIKE else [array] * count
    more = len(groups) - _MAX_ARRAYS
    return [*groups[:_MAX_ARRAYS], f"and {more:,} more"] if more > 0 else groups


def _call_shapes(variant: Shapes) -> tuple[list[str], list[str]]:
    """Return the shapes of the operands and of the results of one host call.

    If a mask selects elements that share one call, these are on one axis: ``(≤ 12, 5)``.
    """
    levels = variant.levels
    is_gathered = variant.mask is not None and any(variant.mask.batched)
    if not is_gathered or any(level.looped for level in levels):
        return [str(a.shape) for a in variant.operands], [str(a.shape) for a in variant.results]
    size = math.prod(level.size for level in levels)
    everywhere = [level.vmap_method.batched for level in levels]
    return (
        [
            _gathered(aval, [level.axes[number] for level in levels], size)
            for number, aval in enumerate(variant.operands)
        ],
        [_gathered(aval, everywhere, size) for aval in variant.results],
    )


def _gathered(aval: Aval, kinds: Sequence[AxisKind], size: int) -> str:
    """Return the shape of a call for at most `size` batch elements of a batch."""
    axes = sum(kind.is_of_host for kind in kinds)
    if not axes:
        return str(aval.shape)
    alone = all(kind is AxisKind.SIZE1 for kind in kinds)
    sizes = ["1" if alone else f"≤ {size}", *map(str, aval.shape[axes:])]
    return f"({', '.join(sizes)}{',' * (len(sizes) == 1)})"


def level_words(levels: Iterable[VmapLevel]) -> str:
    """Return ``vmap 4 × vmap 3 (batched, unbatched), sequential``, outermost vmap first.

    Arguments are listed only if not all of them are batched. Empty without vmap.
    """
    outermost_first = list(levels)[::-1]
    if not outermost_first:
        return ""
    sizes = (f"vmap {level.size}{_arguments(level)}" for level in outermost_first)
    return f"{' × '.join(sizes)}, {outermost_first[0].method}"


def _arguments(level: VmapLevel) -> str:
    if all(level.batched):
        return ""
    return f" ({', '.join(_ARGUMENTS[kind] for kind in level.axes)})"


def _stopped_words(variant: Shapes) -> str:
    if not variant.stopped:
        return ""
    element, times = variant.stopped
    return f"stopped {f'{times:,} times, first ' * (times > 1)}at element {element:,}"


def _placed_words(variant: Shapes) -> str:
    words, names = [], variant.devices
    if variant.shards:
        more = ["…"] * (len(names) > MAX_DEVICES)
        devices = f" ({', '.join([*names[:MAX_DEVICES], *more])})" if names else ""
        words.append(f"{counted(variant.shards, 'shard')}{devices}")
    if variant.gathered_bytes:
        words.append(f"gathers {byte_words(variant.gathered_bytes)}")
    return ", ".join(words)


def _count_words(variant: Shapes) -> str:
    if variant.stopped and variant.calls < variant.each_time:
        return f"{variant.calls:,} of {call_words(variant.each_time)}"
    return ""


def _element_words(variant: Shapes, levels: Sequence[VmapLevel]) -> str:
    """Say how batch elements are spread over calls: ``1 call for 12 elements (4 × 3)``."""
    calls, mask = variant.calls, variant.mask
    if mask is not None:
        if not mask.elements:
            which = "that reach it" if mask.reached else "whose mask is true"
            return f"calls for the elements {which}"
        return f"{call_words(calls)} for {mask.needed:,} of {counted(mask.elements, 'element')}"
    looped = [level.size for level in levels if level.looped]
    together = [level.size for level in levels if not level.looped]
    at_once, factors = variant.each_time, _factors(looped)
    elements = f"{counted(math.prod(together), 'element')}{_factors(together)}"
    if not calls and 0 in (*looped, *together):
        return "no calls, because the batch is empty"
    if at_once == 1 and calls <= 1:
        return f"1 call for {elements}{'' if calls else ' each time'}"
    partly = variant.stopped is not None and calls < at_once
    if partly:
        words = f"{calls:,} of {call_words(at_once)}{factors}"
    elif calls == 0:
        words = f"{call_words(at_once)}{factors} each time"
    elif calls == at_once or at_once == 1:
        words = f"{call_words(calls)}{factors}"
    else:
        words = f"{call_words(calls)}, {at_once:,}{factors} each time"
    if together or at_once == 1:
        words += f", each for {elements}"
    elif not partly:
        words += ", one for each element"
    return "; ".join(filter(None, (words, _stopped_words(variant))))


def _factors(sizes: Sequence[int]) -> str:
    return f" ({' × '.join(f'{size:,}' for size in sizes)})" if len(sizes) > 1 else ""


def _diagram(
    variant: Shapes, levels: Sequence[VmapLevel], calls: tuple[list[str], list[str]]
) -> DiagramView | None:
    """Draw a variant; None where shapes and vmaps do not fit each other, or there is no vmap."""
    operands, results, mask = variant.operands, variant.results, variant.mask
    if not levels or len(levels) > _MAX_LEVELS:
        return None
    if any(len(level.batched) != len(operands) for level in levels):
        return None
    rows: list[RowView | None] = [
        _row(name, aval, shape, levels, [level.batched[number] for level in levels])
        for number, (name, aval, shape) in enumerate(
            zip(
                _named("argument", operands, variant.operand_names), operands, calls[0], strict=True
            )
        )
    ]
    if mask is not None:
        flags = mask.batched[::-1]
        axes = tuple(filter(None, map(_axis, levels, flags)))
        rows.append(RowView("reached" if mask.reached else "mask", axes, (), "not passed", ""))
    names = _named("result", results, variant.result_names)
    rows += [
        _row(names[number], aval, calls[1][number], levels, [True] * len(levels))
        for number, aval in enumerate(results)
    ]
    fitting = tuple(row for row in rows if row is not None)
    if len(fitting) < len(rows) or len(rows) > _MAX_ROWS:
        return None
    heads = [f"vmap {level.size:,}" for level in levels]
    if len(heads) > 1:
        heads[0] += " (outermost)"
        heads[-1] += " (innermost)"
    alone = math.prod(level.size for level in levels if level.looped) == 1
    receives = f"{'one' if alone else 'each'} call receives"
    return DiagramView(tuple(heads), receives, fitting, len(results))


def _named(word: str, avals: Sequence[Aval], names: Sequence[str]) -> Sequence[str]:
    """Return the names of `avals`; number them if there are no names."""
    if len(names) == len(avals):
        return names
    return [word] if len(avals) == 1 else [f"{word} {place + 1}" for place in range(len(avals))]


def _row(
    name: str, aval: Aval, shape: str, levels: Sequence[VmapLevel], batched: Sequence[bool]
) -> RowView | None:
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
    return RowView(name, tuple(axes), host[seen:], shape, aval.dtype)


def _axis(level: VmapLevel, is_batched: bool) -> AxisView | None:
    """Return what a vmap does to an operand; None if that is unknown."""
    method = level.vmap_method
    if method.batched is AxisKind.IN_PLACE:
        return AxisView(AxisKind.BATCHED, level.size) if is_batched else None  # if it is in front
    kind = method.axis(is_batched)
    return AxisView(kind, 1 if kind is AxisKind.SIZE1 else level.size)
