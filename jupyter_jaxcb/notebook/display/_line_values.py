"""What stands beside lines of the notebook's cells: values that watched cells saw, exceptions."""

from __future__ import annotations

import itertools
import linecache
import traceback
from collections.abc import Sequence
from typing import Any

from ...diagnostics import Bad, Series, brief, details, title
from ...report import ValueView, shorten
from ...stack import ResultError
from ._origins import Origins

MAX_OF_LINE = 4  # the line has no room for more
MAX_VALUES = 500
_LONGEST = 100  # characters of an exception


class LineValues:
    """What the variables of each cell were when a watched cell computed them last.

    Also where host functions raised, when the cell that called them ran last.

    Args:
        origins: the cells that lines of code are in.
    """

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._files: dict[str, list[ValueView]] = {}
        self._raised: dict[str, tuple[str, ValueView]] = {}  # file and value, by running cell

    def add(self, marked: Sequence[tuple[Series, str]], bad: Bad | None = None) -> None:
        """Replace what is known of each cell that these variables are in.

        Args:
            marked: the variables, each with whether it is bad, as `Watch.marked` returns them.
            bad: the first bad value.
        """
        cells = self._origins.cells
        known = {file: of for file, of in self._files.items() if self._origins.is_current(file)}
        values = {
            file: list(_by_line(of))
            for file, of in itertools.groupby(marked, lambda pair: pair[0].file)
        }
        if bad is not None:
            _add_first(values.setdefault(bad.file, []), bad)
        self._files = known | {file: of for file, of in values.items() if file in cells}

    def add_raised(self, error: BaseException | None) -> None:
        """Note the line of a cell that raised `error` in a host function; None: none did.

        A KeyboardInterrupt is not noted: the user stopped the cell. Neither is a ResultError, which
        no line of the user raises; the badge of the call site has it.
        """
        running, cells = self._origins.running, self._origins.cells
        if running is None:
            return
        self._raised.pop(running, None)
        frames = traceback.walk_tb(error.__traceback__ if error else None)
        own = [(frame.f_code, line) for frame, line in frames if frame.f_code.co_filename in cells]
        if error is not None and own and not isinstance(error, KeyboardInterrupt | ResultError):
            code, line = own[-1]
            text = traceback.format_exception_only(type(error), error)[0].partition("\n")[0]
            text = text.removeprefix(f"{type(error).__module__}.")
            value: ValueView = {
                "cell": running,
                "line": line,
                "source": linecache.getline(code.co_filename, line).strip(),
                "name": code.co_name,
                "text": f"✕ {shorten(text, _LONGEST)}",
                "bad": True,
                "first": False,
                "details": ["raised here"],
            }
            self._raised[running] = code.co_filename, value

    def to_json(self) -> list[ValueView]:
        """Return the values of the cells whose source is still that of their last run."""
        found = []
        raised = [(file, [value]) for file, value in self._raised.values()]
        for file, values in [*raised, *self._files.items()]:
            if self._origins.is_current(file):
                for value in values:
                    cell, line, _ = self._origins.place(file, value["line"])
                    found.append(value | {"cell": cell, "line": line})
        return found[:MAX_VALUES]


def _by_line(marked: Any) -> Any:
    for line, of in itertools.groupby(marked, lambda pair: pair[0].line):
        words = [(one, mark, brief(one)[0]) for one, mark in of]
        for one, mark, text in [each for each in words if each[2]][:MAX_OF_LINE]:
            yield {
                "line": line,
                "source": one.source,
                "name": title(one),
                "text": text,
                "bad": mark in ("first", "bad"),
                "first": mark == "first",
                "details": details(one),
            }


def _add_first(values: list[ValueView], bad: Bad) -> None:
    """Say beside its line that a value is the first bad one: with its variable, or else alone."""
    when = f"first {bad.what.removeprefix('a ')} here" + f": {bad.when}" * bool(bad.when)
    for value in values:
        if value["first"]:
            value["text"], value["details"] = when, [str(bad), *value["details"]]
            return
    values.append(
        {
            "cell": None,
            "line": bad.line,
            "source": linecache.getline(bad.file, bad.line).strip(),
            "name": bad.expression,
            "text": when,
            "bad": True,
            "first": True,
            "details": [str(bad)],
        }
    )
