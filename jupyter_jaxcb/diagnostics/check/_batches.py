"""Compare the results for a batch, and for parts of the rows, with those of single calls."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from ...recording import VMAP_METHODS, Finding
from ...stack.call import HostFunction
from ...stack.flavors import bind_pure
from ...stack.options import Options
from ._compare import difference
from ._elements import Elements
from ._subject import one_by_one, one_line

VMAP, ROWS = "vmap contract", "rows alone"
_BATCHED = [name for name, method in VMAP_METHODS.items() if not method.looped]
_FEW = 8  # rows, up to which each is also passed alone

_Level = tuple[int, list[bool]]  # the size of one vmap, and which operands it maps


def vmap_findings(elements: Elements, methods: dict[str, bool]) -> Iterator[Finding | str]:
    """Yield a finding if a batch gives other results than single calls.

    Only ufuncs get batches that their vmap method does not make: other functions may do anything
    with one, loop forever, or crash the process in C code.

    Args:
        elements: what batches are made from.
        methods: receives, for a ufunc, which vmap methods are right.
    """
    subject = elements.subject
    method = subject.settings.get("vmap_method")
    function = subject.callback.host.current
    while isinstance(function, functools.partial):
        function = function.func
    if method in _BATCHED:
        what = _wrong_batch(elements, method)
        if what:
            right = [one for one in _BATCHED if one != method and not _wrong_batch(elements, one)]
            others = f", or {' or '.join(map(repr, right))}" if right else ""
            yield Finding(
                VMAP,
                what,
                f"Register it with vmap_method='sequential'{others}, or make it accept a leading "
                "batch axis in each argument.",
            )
    elif not subject.operands or not subject.avals:
        yield "no array to map over"
    elif isinstance(function, np.ufunc):
        methods.update((one, not _wrong_batch(elements, one)) for one in _BATCHED)
    elif method:
        yield f"{method}: each batch element is a separate call"
    else:
        yield "vmap_method=None: vmap is refused"


def _wrong_batch(elements: Elements, method: str) -> str:
    """Describe the first wrong result under a vmap method; empty if there is none.

    Tried are all operands mapped, each alone, and two nested vmaps.
    """
    subject, count = elements.subject, elements.count
    operands = range(len(subject.operands))
    mapped = [n for n in operands if not subject.unbatched[n]]
    together = [n in mapped for n in operands]
    tried: list[list[_Level]] = [[(count, together)]] if mapped else []
    if mapped and not subject.is_large:
        alone = [[n in group for n in operands] for group in one_by_one(mapped)]
        if len(mapped) > 1:
            tried += [[(count, mask)] for mask in alone]
        # Under legacy_vectorized, a function cannot tell the batch axes of two arguments apart.
        if len(mapped) > 1 and not VMAP_METHODS[method].hides_axes:
            tried.append([(count, alone[0]), (2, alone[1])])
        tried.append([(count, together), (2, together)])
    return next(filter(None, (_wrong_under(elements, method, levels) for levels in tried)), "")


def _wrong_under(elements: Elements, method: str, levels: Sequence[_Level]) -> str:
    """Let nested vmaps, innermost first, call the host function, and describe what is wrong."""
    subject = elements.subject
    outermost_first = levels[::-1]
    axes = tuple(size for size, _ in outermost_first)
    # The variant of each operand in each batch element; where it is not mapped, the axis has size 1
    grids: list[Any] = [
        sum(np.ix_(*(np.arange(size if mask[n] else 1) for size, mask in outermost_first)))
        % elements.count
        for n in range(len(subject.operands))
    ]
    alone = {}
    try:
        for place in np.ndindex(axes):
            alone[place] = elements.result([int(np.broadcast_to(n, axes)[place]) for n in grids])
    except Exception:  # values made up for one operand may not fit those of another
        return ""
    got: list[Any] = []  # the batch, then its results or an error

    def host(*batch: np.ndarray) -> list[np.ndarray]:
        got.append(batch)
        try:
            got.append(subject.run(batch, axes=axes))
        except Exception as error:
            got.append(error)
            raise
        return got[1]

    call: Any = functools.partial(
        bind_pure, HostFunction(host), list(subject.avals), kwargs={},
        options=Options(flavor="pure", vmap_method=method),
    )  # fmt: skip
    mapped = lambda *operands: call(operands)  # noqa: E731
    for _, mask in levels:
        mapped = jax.vmap(mapped, [0 if on else None for on in mask])
    batch = []
    for n, (values, grid) in enumerate(zip(elements.variants, grids, strict=True)):
        unmapped = tuple(i for i, (_, mask) in enumerate(outermost_first) if not mask[n])
        batch.append(np.asarray(np.stack(values)[grid.squeeze(unmapped)]))
    try:
        mapped(*batch)
    except Exception:  # of the host function, or of jax_debug_nans
        if len(got) < 2:
            raise
    if not got:  # all results are empty
        return ""
    batch, results = got
    shapes = ", ".join(str(array.shape) for array in batch)
    case = f"under vmap_method={method!r}, called with shapes {shapes} for a batch of {axes},"
    if isinstance(results, Exception):
        return f"{case} it fails: {one_line(results)}"
    for place, expected in alone.items():
        wrong = difference([np.asarray(y[place]) for y in results], expected, subject.paths)
        if wrong:
            element = place[0] if len(place) == 1 else place
            return (
                f"{case} batch element {element} is {wrong.found}{wrong.at}; called alone it "
                f"returns {wrong.expected}"
            )
    return ""


def rows_findings(elements: Elements) -> Iterator[Finding | str]:
    """Yield a finding if parts of the rows give other results than all rows together."""
    subject = elements.subject
    named = subject.settings["partitioned"]
    divided = [x.ndim > 0 for x in subject.operands]
    if named is not True:
        divided = [n in subject.operands_of(named, floating=False) for n in range(len(divided))]
    given = [x for x, on in zip(subject.operands, divided, strict=True) if on]
    counts = {x.shape[0] for x in given}
    if not counts:
        yield "no argument has rows"
    elif len(counts) > 1 or any(aval.shape[:1] != (*counts,) for aval in subject.avals):
        yield "arguments and results do not have the same rows, so no program can call it"
    elif min(counts) < 2:
        yield "there are fewer than two rows"
    else:
        mixed = [x.copy() for x in subject.operands]  # the given rows may all be equal
        for x, values, on in zip(mixed, elements.variants, divided, strict=True):
            for n in range(elements.count if on else 0):
                x[n :: elements.count] = values[n][n :: elements.count]
        for operands in (subject.operands, mixed):
            what = _wrong_rows(elements, divided, operands)
            if what:
                advice = "Let each row of the result depend on the same row of the arguments alone,"
                yield Finding(ROWS, what, f"{advice} or drop partitioned=True.")
                return


def _wrong_rows(elements: Elements, divided: Sequence[bool], operands: Sequence[np.ndarray]) -> str:
    """Describe wrong results for the halves of the rows, and for each of a few; empty if none."""
    subject = elements.subject
    count = next(len(x) for x, on in zip(operands, divided, strict=True) if on)
    try:
        whole = subject.run(operands)
    except Exception:  # values made up from others may not be in its domain
        return ""
    for parts in (2, count) if count <= _FEW else (2,):
        results: list[list[np.ndarray]] = []
        for rows in np.array_split(np.arange(count), parts):
            part = [x[rows] if on else x for x, on in zip(operands, divided, strict=True)]
            try:
                results.append(subject.run(part, rows=len(rows)))
            except Exception as error:
                part = f"rows {rows[0]} to {rows[-1]}" if len(rows) > 1 else f"row {rows[0]}"
                return f"called with {part} of {count} alone it fails: {one_line(error)}"
        found = list(map(np.concatenate, zip(*results, strict=True)))
        wrong = difference(found, whole, subject.paths)
        if wrong:
            return (
                f"rows depend on others: called with {parts} parts of its {count} rows it returns "
                f"{wrong.found}{wrong.at}; called with all rows, {wrong.expected}"
            )
    return ""
