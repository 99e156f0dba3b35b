"""What a block saw, as text: a table by line, and a sparkline of each variable."""

from __future__ import annotations

import itertools
import linecache
import os
from collections.abc import Iterator, Sequence

import numpy as np

from ...recording import cell_number
from ...stack.trace import is_cell
from ._series import Series

_BLOCKS = "▁▂▃▄▅▆▇█"
_SPARK = 24  # characters
_LONG = 60
COLUMNS = ("line", "variable", "shape", "times", "min", "mean", "max", "NaN", "inf")


def table(series: Sequence[Series], first: Sequence[bool]) -> str:
    """Return the variables, file by file, with a mark at those that are `first`."""
    rows = [[*COLUMNS, "mean by step"]]
    lines: list[str | int] = [0]
    for before, one, is_first in zip([None, *series], series, first, strict=False):
        if before is None or before.file != one.file:
            lines.append(label(one.file))
        lines.append(len(rows))
        rows.append([*cells(one), sparkline(curve(one)) + "  ← first bad value" * is_first])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        line if isinstance(line, str) else _aligned(rows[line], widths) for line in lines
    )


def label(file: str) -> str:
    """Return the name of a file; of a cell its number, ``[4]``, or else its first line."""
    if not is_cell(file):
        return os.path.basename(file)
    if number := cell_number(file):
        return f"[{number}]"
    lines = [line.strip() for line in linecache.getlines(file)]
    own = [line for line in lines if line and not line.startswith(("%", "get_ipython()"))]
    return f'cell "{shorten(own[0])}"' if own else "cell"


def place(file: str, line: int, function: str = "") -> str:
    """Return ``[4] line 3 of loss``, without the number where cells have none."""
    number = cell_number(file)
    return f"[{number}] " * (number > 0) + f"line {line}" + f" of {function}" * bool(function)


def shorten(text: str) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [
        cell.ljust(width) if place in (1, 2, 9) else cell.rjust(width)
        for place, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]
    return "  ".join(cells).rstrip()


def brief(one: Series) -> tuple[str, bool]:
    """Return a variable in a few words, from its first step to the last, and whether it is bad."""
    values = curve(one)
    known = values[np.isfinite(values)]
    bad = np.flatnonzero((one.nan + one.inf).sum(axis=1))
    if not len(bad) and (one.totals.nan or one.totals.inf):  # in steps that are not kept
        return f"{title(one)} {'NaN' if one.totals.nan else 'inf'}", True
    if not len(bad) and not len(known):
        return "", False
    if not len(bad):
        ends = known[:1] if (known == known[0]).all() else known[[0, -1]]
        what = "" if one.is_scalar and not one.batch else "mean "
        return f"{title(one)} {what}{' → '.join(map(number, ends))}", False
    what = "NaN" if one.nan[bad[0]].any() else "inf"
    if one.steps.shape[1]:
        lasts = bad[-1] - bad[0] + 1 == len(bad) > 1 and bad[-1] == len(values) - 1
        what += f" {'from' if lasts else 'in'} step {', '.join(map(str, one.steps[bad[0]]))}"
    return f"{title(one)} {what}", True


def details(one: Series) -> list[str]:
    """Return the numbers of a variable, in lines."""
    _, _, shape, times, least, mean, most, nan, inf = cells(one)
    sizes = [f"min {least}", f"mean {mean}", f"max {most}"] if mean else []
    counts = [f"{count} {what}" for count, what in ((nan, "NaN"), (inf, "inf")) if count]
    times = f"{times} {'time' if times == '1' else 'times'}"
    return [" · ".join(parts) for parts in ([shape, times], sizes, counts) if parts]


def title(one: Series) -> str:
    """Return the variable, or that it is the cotangent of one."""
    return one.name if one.direction == "forward" else f"{one.name} (cotangent)"


def cells(one: Series) -> list[str]:
    shape = f"{one.dtype}[{','.join(map(str, one.shape))}]"
    if one.batch:
        shape += f" of {'x'.join(map(str, one.batch))}"
    if one.shards > 1:
        shape += f" on {one.shards} shards"
    totals = one.totals
    numbers = totals.min, _mean(one.mean), totals.max
    if totals.min > totals.max:  # no value was finite
        numbers = (np.nan,) * 3
    return [
        str(one.line), title(one), shape, f"{one.count:,}", *map(number, numbers),
        f"{totals.nan or ''}", f"{totals.inf or ''}",
    ]  # fmt: skip


def _mean(x: np.ndarray) -> float:
    return float(np.mean(x[np.isfinite(x)])) if np.isfinite(x).any() else np.nan


def number(x: float) -> str:
    """Return a number with four digits; nothing if there is none."""
    return "" if np.isnan(x) else f"{x:.4g}"


def curve(one: Series) -> np.ndarray:
    """Return the mean of each step over the batch elements; NaN where a value is not finite."""
    finite = np.isfinite(one.mean)
    count = finite.sum(axis=1)
    total = np.where(finite, one.mean, 0).sum(axis=1)
    bad = (one.nan.sum(axis=1) + one.inf.sum(axis=1)) > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(bad, np.nan, total / count)


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """Return at most `most` values, each the mean of its part; NaN if one of them is NaN."""
    if len(values) <= most:
        return values
    edges = np.linspace(0, len(values), most + 1).astype(int)
    return np.array([values[a:b].mean() for a, b in itertools.pairwise(edges)])


def sparkline(values: np.ndarray) -> str:
    """Return the values as blocks; NaN and infinite values are shown as x."""
    values = thinned(values, _SPARK)
    if len(values) < 2:
        return ""
    return "".join(_blocks(values))


def _blocks(values: np.ndarray) -> Iterator[str]:
    finite = values[np.isfinite(values)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    for value in values:
        if not np.isfinite(value):
            yield "x"
        else:
            share = 0.5 if high == low else (value - low) / (high - low)
            yield _BLOCKS[min(7, int(share * 8))]
