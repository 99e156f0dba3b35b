"""Count which callbacks were called under which transformations in the compared programs."""

from __future__ import annotations

import itertools
from collections import Counter

from ._compare import Outcome
from ._programs import LEAVES, METHODS, PARTS, Callback, Program, parts

called: Counter[tuple[str, str]] = Counter()  # callbacks by (block around them, flavor or method)
refused: Counter[tuple[str, str]] = Counter()  # the same for programs in which JAX raised
programs: Counter[str] = Counter()
dtypes: Counter[str] = Counter()  # of the arrays in programs that ran

ROWS = tuple(dict.fromkeys(part for kind in PARTS.values() for part in kind))
FLAVORS = ("pure", "io", "ordered io", "debug", "ordered debug")
_COLUMNS = (*FLAVORS, *(f"pure {method}" for method in (*METHODS, None)))


def count(program: Program, outcome: Outcome) -> None:
    """Count a program that was compared."""
    ran = outcome.error is None
    programs["ran" if ran else f"refused: {outcome.error.__name__}"] += 1
    dtypes.update({program.aval(leaf)[1] for leaf in LEAVES} if ran else ())
    names = {call[0] for call in outcome.calls}
    for callback, path in parts(program.block):
        if not ran:
            refused.update(_combinations(callback, path))
        elif callback.name in names:
            called.update(_combinations(callback, path))


def combinations(program: Program) -> set[tuple[str, str]]:
    """Return the (block, flavor or method) pairs of all callbacks in a program."""
    return {pair for site in parts(program.block) for pair in _combinations(*site)}


def _combinations(callback: Callback, path: tuple[str, ...]) -> set[tuple[str, str]]:
    columns = ["ordered " * callback.ordered + callback.flavor]
    columns += [f"pure {callback.method}"] * (callback.flavor == "pure")
    return set(itertools.product(path, columns))


def table() -> list[str]:
    """Return the lines of a table of callbacks that were called and, in parentheses, refused."""
    if not programs:
        return []
    lines = [", ".join(f"{n} {outcome}" for outcome, n in sorted(programs.items()))]
    lines.append("programs by dtype: " + ", ".join(f"{k} {n}" for k, n in sorted(dtypes.items())))
    heads = [column.removeprefix("pure ").replace("_", " ") for column in _COLUMNS]
    widths = [max(len(head), 7) + 2 for head in heads]
    pairs = list(zip(heads, widths, strict=True))
    lines.append(f"{'':20}" + "".join(f"{head:>{width}}" for head, width in pairs))
    for row in ROWS:
        cells = [f"{called[row, c]} ({refused[row, c]})" for c in _COLUMNS]
        line = "".join(f"{cell:>{w}}" for cell, w in zip(cells, widths, strict=True))
        lines.append(f"{row:20}{line}")
    return lines
