"""Compare the results for a batch, and for parts of the rows, with those of single calls."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...recording import VMAP_METHODS, AxisKind
from ._subject import Operands, Subject, Wrong, difference, one_by_one, one_line

_BATCHED = [name for name, method in VMAP_METHODS.items() if not method.looped]
_FEW = 8  # rows, up to which each is also passed alone

_Levels = list[tuple[int, list[int]]]  # of each vmap its size, and the operands that it maps


def check_vmap(subject: Subject) -> Iterator[Wrong | str]:
    """Compare the results for a batch with those of single calls.

    Only ufuncs get batches that their vmap method does not make: other functions may do anything
    with one, loop forever, or crash the process in C code.
    """
    method = subject.settings.get("vmap_method")
    function = subject.callback.host.current
    while isinstance(function, functools.partial):
        function = function.func
    if method in _BATCHED:
        what = _wrong_batch(subject, method)
        if what:
            others = [name for name in _BATCHED if name != method]
            right = [name for name in others if not _wrong_batch(subject, name)]
            other = f", or {' or '.join(map(repr, right))}" if right else ""
            advice = f"Register it with vmap_method='sequential'{other}, or make it accept a "
            yield what, f"{advice}leading batch axis in each argument."
    elif not subject.operands or not subject.avals:
        yield "no array to map over"
    elif isinstance(function, np.ufunc):
        subject.vmap_methods |= {name: not _wrong_batch(subject, name) for name in _BATCHED}
    elif method:
        yield f"{method}: each batch element is a separate call"
    else:
        yield "vmap_method=None: vmap is refused"


def _wrong_batch(subject: Subject, method: str) -> str:
    """Describe the first wrong result under a vmap method; empty if there is none.

    Tried are all operands mapped, each alone, and two nested vmaps.
    """
    count = subject.count
    mapped = [n for n, unbatched in enumerate(subject.unbatched) if not unbatched]
    tried: list[_Levels] = [[(count, mapped)]] if mapped else []
    if mapped and count > 2:  # else batches take much memory
        first, *others = one_by_one(mapped)
        if others:
            tried += [[(count, group)] for group in (first, *others)]
        # Under legacy_vectorized, a function cannot tell the batch axes of two arguments apart.
        if others and not VMAP_METHODS[method].hides_axes:
            tried.append([(2, others[0]), (count, first)])
        tried.append([(2, mapped), (count, mapped)])
    return next(filter(None, (_wrong_under(subject, method, levels) for levels in tried)), "")


def _wrong_under(subject: Subject, method: str, levels: _Levels) -> str:
    """Call the host function as vmaps do, the outermost first, and describe what is wrong."""
    axes = tuple(size for size, _ in levels)
    unmapped = VMAP_METHODS[method].axis(False)
    batch, elements = [], []  # each operand, and which of its variants is in each batch element
    for n, values in enumerate(subject.variants):
        sizes = [size if n in operands else 1 for size, operands in levels]
        chosen: Any = sum(np.ix_(*map(np.arange, sizes))) % subject.count
        elements.append(np.broadcast_to(chosen, axes))
        if unmapped is AxisKind.TILED:
            chosen = elements[-1]
        elif unmapped is AxisKind.UNBATCHED:
            chosen = chosen[tuple(slice(None) if n in operands else 0 for _, operands in levels)]
        batch.append(np.asarray(np.stack(values)[chosen]))
    alone = {}
    for place in np.ndindex(axes):
        pairs = zip(subject.variants, elements, strict=True)
        alone[place] = subject.alone([values[chosen[place]] for values, chosen in pairs])
    if None in alone.values():  # values made up for one operand do not fit those of another
        return ""
    shapes = ", ".join(str(array.shape) for array in batch)
    case = f"under vmap_method={method!r}, called with shapes {shapes} for a batch of {axes},"
    try:
        results = subject.run(batch, shapes=[(*axes, *y.shape) for y in subject.avals])
    except Exception as error:
        return f"{case} it fails: {one_line(error)}"
    for place, expected in alone.items():
        element = place[0] if len(place) == 1 else place
        words = f"batch element {element} is {{found}}{{at}}; called alone it returns {{expected}}"
        found = [np.asarray(y[place]) for y in results]
        wrong = difference(found, expected, subject.paths, words=words)
        if wrong:
            return f"{case} {wrong}"
    return ""


def check_rows(subject: Subject) -> Iterator[Wrong | str]:
    """Compare the results for parts of the rows with those for all rows together."""
    named, operands = subject.settings["partitioned"], subject.operands
    divided = range(len(operands)) if named is True else subject.operands_of(named)
    divided = [n for n in divided if operands[n].ndim]
    counts = {len(operands[n]) for n in divided}
    if not counts:
        yield "no argument has rows"
    elif len(counts) > 1 or any(y.shape[:1] != (*counts,) for y in subject.avals):
        yield "arguments and results do not have the same rows, so no program can call it"
    elif min(counts) < 2:
        yield "there are fewer than two rows"
    else:
        mixed = [x.copy() for x in operands]  # the given rows may all be equal
        for n in divided:
            for element in range(subject.count):
                rows = slice(element, None, subject.count)
                mixed[n][rows] = subject.variants[n][element][rows]
        what = _wrong_rows(subject, operands, divided) or _wrong_rows(subject, mixed, divided)
        if what:
            advice = "Let each row of the result depend on the same row of the arguments alone,"
            yield what, f"{advice} or drop partitioned=True."


def _wrong_rows(subject: Subject, operands: Operands, divided: Sequence[int]) -> str:
    """Describe wrong results for the halves of the rows, and for each of a few; empty if none."""
    count = len(operands[divided[0]])
    try:
        whole = subject.run(operands)
    except Exception:  # values made up from others may not be in its domain
        return ""
    for parts in (2, count) if count <= _FEW else (2,):
        results = []
        for rows in np.array_split(np.arange(count), parts):
            part = [x[rows] if n in divided else x for n, x in enumerate(operands)]
            try:
                shapes = [(len(rows), *y.shape[1:]) for y in subject.avals]
                results.append(subject.run(part, shapes=shapes))
            except Exception as error:
                which = f"rows {rows[0]} to {rows[-1]}" if len(rows) > 1 else f"row {rows[0]}"
                return f"called with {which} of {count} alone it fails: {one_line(error)}"
        wrong = difference(
            list(map(np.concatenate, zip(*results, strict=True))), whole, subject.paths,
            words=f"rows depend on others: called with {parts} parts of its {count} rows it "
            "returns {found}{at}; called with all rows, {expected}",
        )  # fmt: skip
        if wrong:
            return wrong
    return ""
