"""The values that watched cells have seen, for the lines of the notebook's cells."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...diagnostics import Series, brief, details, title
from ._origins import Origins

MAX_OF_LINE = 4  # the line has no room for more
MAX_VALUES = 500


class LineValues:
    """What the variables of each cell were when a watched cell computed them last.

    Args:
        origins: the cells that lines of code are in.
    """

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._files: dict[str, list[dict[str, Any]]] = {}

    def add(self, series: Sequence[Series]) -> None:
        """Replace what is known of each cell that these variables are in."""
        files = self._origins.cells
        known = {file: of for file, of in self._files.items() if self._origins.is_current(file)}
        for file, of in itertools.groupby(series, lambda one: one.file):
            if file in files:
                known[file] = list(_by_line(of))
        self._files = known

    def to_json(self) -> list[dict[str, Any]]:
        """Return the values of the cells whose source is still that of their last run."""
        found = []
        for file, values in self._files.items():
            if self._origins.is_current(file):
                for value in values:
                    cell, line = self._origins.place(file, value["line"])
                    found.append(value | {"cell": cell, "line": line})
        return found[:MAX_VALUES]


def _by_line(series: Any) -> Any:
    for line, of in itertools.groupby(series, lambda one: one.line):
        words = [(one, *brief(one)) for one in of]
        for one, text, is_bad in [each for each in words if each[1]][:MAX_OF_LINE]:
            yield {
                "line": line,
                "source": one.source,
                "name": title(one),
                "text": text,
                "bad": is_bad,
                "details": details(one),
            }
