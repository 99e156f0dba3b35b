"""What a kernel sends beside finished sites: its callbacks, and the progress of the running cell.

`view.schema.json` describes these objects, too.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from ._site_view import SiteView


@dataclasses.dataclass(frozen=True)
class CallbackView:
    """A registered callback, with the totals of its sites."""

    name: str  # under which it is registered
    flavor: str  # as "pure" or "io"
    options: str  # as its repr names them
    cell: str | None  # the front end's id of the cell; None: a file or an unknown cell
    line: int  # in that cell or file, 1-based; 0: unknown
    where: str  # "line 3"; empty if it is not in a cell
    sites: tuple[int, ...]  # indices of its sites in the message
    calls: int  # host calls
    elided: int  # outcomes with an elided status
    errors: int  # error texts of its sites
    host_ns: int  # in the host function, summed over calls

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return vars(self) | {"sites": list(self.sites)}


@dataclasses.dataclass(frozen=True)
class RunningView:
    """A host call that has been running for some time."""

    function: str  # name of the host function
    where: str  # "line 3", "model.py:12"
    element: int  # of the batch; -1: no element
    thread: str  # name of the thread
    elapsed_ns: int  # since it began


@dataclasses.dataclass(frozen=True)
class ProgressView:
    """The progress of the running cell."""

    elapsed_ns: int  # since the cell began
    since_first_ns: int  # since the first call began; 0: none has
    calls: int  # host calls so far
    rate: float  # calls per second, recently
    expected: int | None  # calls of the runs so far; None: unknown
    run: int  # the number of the run under way, whose calls `expected` are; 0: those of all runs
    running: tuple[RunningView, ...]  # the unfinished calls that have been running for some time
    sites: tuple[SiteView, ...]  # in order of appearance
    not_sent: int  # calls left out of the timeline to limit the load on the kernel

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON."""
        return vars(self) | {
            "running": [dict(vars(one)) for one in self.running],
            "sites": [one.to_json() for one in self.sites],
        }
