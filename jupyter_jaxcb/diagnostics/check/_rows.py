"""Check that a function with ``partitioned=`` treats each row alone, by calling it with parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...recording import Finding
from ...stack.call import ArrayNames, option
from ...stack.lowering import in_rows
from ._compare import difference, differing_rows
from ._subject import Subject, one_line
from ._vmap import ElementSamples

KIND = "rows alone"
_FEW = 8  # rows, up to which each is also passed alone; and so many are named


def rows_findings(elements: ElementSamples) -> Iterator[Finding | str]:
    """Yield a finding if parts of the rows give other results than all rows together.

    Yields a text if there is nothing to compare.
    """
    subject = elements.subject
    divided = _divided(subject)
    given = [x for x, on in zip(subject.operands, divided, strict=True) if on]
    rows = {x.shape[0] for x in given if x.ndim}
    if not rows:
        yield "no argument has rows"
    elif len(rows) > 1 or any(aval.shape[:1] != (*rows,) for aval in subject.avals):
        yield "arguments and results do not have the same rows, so no program can call it"
    elif min(rows) < 2:
        yield "there are fewer than two rows"
    else:
        what = _broken(subject, divided, subject.operands) or _broken(
            subject, divided, _mixed(elements, divided)
        )
        if what:
            alone = option(subject.callback.host, "partitioned")
            yield Finding(
                KIND,
                what,
                "Let each row of the result depend on the same row of the arguments alone, or drop "
                f"{alone}.",
            )


def _divided(subject: Subject) -> list[bool]:
    """Return which operands are in rows."""
    call = subject.arguments_of_call
    function, static = subject.callback.host.current, tuple(call.static.values)
    names = ArrayNames(function, call.in_tree, None, static, subject.leading).operands()
    return in_rows(subject.settings["partitioned"], names, subject.operands)


def _mixed(elements: ElementSamples, divided: Sequence[bool]) -> list[np.ndarray]:
    """Return operands whose rows differ more than the given ones, which may all be equal."""
    mixed = [x.copy() for x in elements.subject.operands]
    for x, values, on in zip(mixed, elements.variants, divided, strict=True):
        for n in range(elements.count if on else 0):
            x[n :: elements.count] = values[n][n :: elements.count]
    return mixed


def _broken(subject: Subject, divided: Sequence[bool], operands: Sequence[np.ndarray]) -> str:
    """Say what is wrong with the results for parts of the rows; empty if nothing is."""
    count = next(len(x) for x, on in zip(operands, divided, strict=True) if on)
    try:
        whole = subject.run(operands)
    except Exception:  # values made up from others may not be in its domain
        return ""
    for parts in sorted({2, count} if count <= _FEW else {2}):
        found: list[list[np.ndarray]] = []
        for rows in np.array_split(np.arange(count), parts):
            part = [x[rows] if on else x for x, on in zip(operands, divided, strict=True)]
            try:
                found.append(subject.run(part, rows=len(rows), fresh=True))
            except Exception as error:
                return f"called with {_words(rows)} of {count} alone it fails: {one_line(error)}"
        results = [np.concatenate(own) for own in zip(*found, strict=True)]
        wrong = difference(results, whole, subject.paths)
        if wrong:
            differ = _words(differing_rows(results, whole))
            return (
                f"{differ} of {count} depend on others: called with {parts} parts of the rows it "
                f"returns {wrong.found}{wrong.at}; called with all rows, {wrong.expected}"
            )
    return ""


def _words(rows: Sequence[int] | np.ndarray) -> str:
    """Return ``row 3``, ``rows 0 to 4`` or ``rows 0, 2, 5``."""
    first, *rest = map(int, rows)
    if not rest:
        return f"row {first}"
    if rest == list(range(first + 1, first + 1 + len(rest))):
        return f"rows {first} to {rest[-1]}"
    shown = [first, *rest][:_FEW]
    return f"rows {', '.join(map(str, shown))}{', …' * (len(rest) >= _FEW)}"
