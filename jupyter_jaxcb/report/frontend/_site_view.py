"""`SiteView`: what every display says about a call site, and its JSON.

A saved output, the side panel, badges, the live view and a page show this one shape. Its JSON
Schema is `view.schema.json`, which the tests of both languages use.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from ...recording import Frame, Site, Status
from ..summary import QUEUE_OPTION, DiagramView, SiteSummary, VariantView

SCHEMA = 1  # of all JSON for the front end: of saved outputs and of messages


_SHOWN_NS = 1_000_000_000  # a call that runs for longer is mentioned beside its line
_SLOW_NS = 5_000_000_000  # and from here on with a warning, as in the live view


class Located(NamedTuple):
    """The cell of a line."""

    cell: str | None  # the front end's id; None: not in a cell, or unknown
    line: int  # in that cell
    number: int = 0  # of the cell's last run, as in ``[21]``; 0: unknown


Place = Callable[[str, int], Located]  # of a file and a line
Where = Callable[[Site | Frame], str]  # names the place of a site or of a calling frame


class SampleView(NamedTuple):
    """Abbreviated argument and result values of one host call."""

    words: str  # "element 2: 0.25, [1, 2, 3, …] → 0.5"
    failed: bool  # the host function raised


class Proposal(NamedTuple):
    """An option of a callback that advice proposes."""

    option: str  # as in code: "queued=True"
    advice: str  # what to say
    excludes: tuple[str, ...] = ()  # names of options that do not go with it


class Figure(NamedTuple):
    """A fact in a few words, which tooltips say after the number of calls."""

    words: str  # "queued"
    brief: bool  # badges and the side panel say it, too, where there is little room


class SiteProgress(NamedTuple):
    """The totals of one call site of a running cell so far."""

    site: Site
    calls: int
    errors: int
    host_ns: int
    running_ns: int = 0  # since the first of its unfinished calls began


@dataclasses.dataclass(frozen=True, kw_only=True)
class SiteView:
    """What every display says about a call site; a site of a running cell has less in it."""

    function: str  # name of the host function
    flavor: str  # as "pure" or "io"
    where: str  # "line 3", "line 3, another cell", "model.py:12"
    line: int  # 1-based; 0: unknown
    column: int = 0  # 0-based
    cell: bool = True  # in a notebook cell, not in a file
    source: str = ""  # the line, stripped
    status: Status = Status.KEPT  # of a running cell: kept
    consequence: str = "kept"  # what matters most about its calls: a problem, or else its status
    word: str = ""  # what became of its calls; empty: the word of the consequence
    reason: str = ""  # empty when its calls are simply kept
    advice: str = ""  # what to do about it
    calls: int = 0  # host calls
    crossings: int = 0  # of a running cell: 0
    expected: int | None = None  # calls of the recorded runs, as compiled; None: unknown
    written: int | None = None  # calls of the recorded runs in the program text; None: unknown
    elided: int = 0  # outcomes with an elided status
    notes: tuple[str, ...] = ()  # what else is worth knowing
    errors: tuple[str, ...] = ()  # of a running cell: how many calls have failed
    shapes: tuple[VariantView, ...] = ()  # of a running cell: none
    arguments: str = ""  # names, to call the host function with: "x, y"
    sample_values: tuple[SampleView, ...] = ()  # none unless they are asked for
    cost: str = ""  # "82 %": of the time of the recorded code; empty: less than a third
    hints: tuple[str, ...] = ()  # what costs more than one may think, in a few words each
    host_ns: int | None = None  # in the host function, summed over calls; None: it was not saved
    wall_ns: int = 0  # of crossings whose calls ran in workers of an executor; 0: not all did
    variants_ns: tuple[int, ...] = ()  # the same by variant
    looped: int = 0  # calls for single batch elements that fewer calls would replace
    figures: tuple[Figure, ...] = ()  # what else is said beside the number of calls
    cell_id: str | None = None  # the front end's id of the cell; None: a file or an unknown cell
    cell_line: int  # in the cell as the user sees it, 1-based; 0: unknown
    numbered: str = ""  # `where` with the numbers of other cells: "[21] line 3"; empty: the same
    around: tuple[str, ...] = ()  # "scan of 5", outermost first
    stack: tuple[str, ...] = ()  # the same with transformations, as JAX names them
    proposals: tuple[Proposal, ...] = ()  # that need times, and can be written into the code
    sample_rows: tuple[int, ...] = ()  # by sample: the index of its call; -1: not in the document
    # Calls that returned NaN or infinity: how many to skip, how many follow, how many to skip, ...
    not_finite_rows: tuple[int, ...] = ()  # for finite arguments
    passed_on_rows: tuple[int, ...] = ()  # for others
    first_element: int = -1  # of the batch, in the first of `not_finite_rows`; -1: no element

    def facts(self, *, brief: bool = False) -> dict[str, Any]:
        """Return what is the same in every run, as JSON: the part in the data of an output.

        Args:
            brief: leave out what has its default, as saved outputs do.
        """
        return _json(self, brief, _FACTS)

    def measured(self, *, brief: bool = False) -> dict[str, Any]:
        """Return what changes from run to run, as JSON: the part in the metadata of an output.

        Args:
            brief: leave out what has its default, as saved outputs do.
        """
        return _json(self, brief, MEASURED)

    def to_json(self) -> dict[str, Any]:
        """Return facts and measurements in one object."""
        return self.facts() | self.measured()


# Times and what depends on them, ids and numbers of cells, and the names that JAX gives to what is
# around a call, which change with JAX.
MEASURED = frozenset(
    {"host_ns", "wall_ns", "cost", "variants_ns", "figures", "proposals"}
    | {"cell_id", "cell_line", "numbered", "around", "stack"}
    | {"sample_rows", "not_finite_rows", "passed_on_rows", "first_element"}
)


class Marks(NamedTuple):
    """Which calls of a site returned NaN or infinity, see `SiteView`."""

    not_finite_rows: tuple[int, ...] = ()
    passed_on_rows: tuple[int, ...] = ()
    first_element: int = -1


NO_MARKS = Marks()


def finished(
    summary: SiteSummary,
    *,
    place: Place | None = None,
    numbered: str = "",
    values: bool = False,
    proposals: Iterable[Proposal] = (),
    sample_rows: Iterable[int] = (),
    marks: Marks = NO_MARKS,
    started: str = "",
) -> SiteView:
    """Return the view of a site whose cell has ended.

    Args:
        summary: of the site.
        place: maps a file and a line to a notebook cell.
        numbered: see `SiteView`.
        values: include the sample values.
        proposals: of its profile.
        sample_rows: their calls, see `SiteView`.
        marks: the calls that returned NaN or infinity.
        started: says which calls were made by threads that earlier cells started.
    """
    samples = zip(summary.samples, summary.sample_values, strict=True) if values else ()
    own = {name: getattr(summary, name) for name in _IN_SUMMARY}
    figures = (*_figures(summary), *([Figure(started, brief=False)] if started else []))
    return SiteView(
        **own
        | _place(summary.site, summary.where, place)
        | marks._asdict()
        | {
            "shapes": tuple(map(_brief, summary.drawn)),
            "sample_values": tuple(SampleView(words, one.failed) for words, (one, _) in samples),
            "variants_ns": tuple(shapes.host_ns for shapes in summary.shapes),
            "figures": figures,
            "numbered": numbered,
            "proposals": (*_of_summary(summary), *proposals),
            "sample_rows": tuple(sample_rows),
        }
    )


# What a view has of a summary as it is.
_OF_SUMMARY = {*SiteSummary.__dataclass_fields__, *vars(SiteSummary)}
_IN_SUMMARY = [name for name in SiteView.__dataclass_fields__ if name in _OF_SUMMARY]


def _brief(view: VariantView) -> VariantView:
    """Leave out what the diagram says, too."""
    return dataclasses.replace(view, arrays="", vmaps="") if view.diagram else view


# How calls are made: "compiled by numba: machine code ...".
_MADE = re.compile(r"(\w+)(?: by \w+)?: ")


def _figures(summary: SiteSummary) -> tuple[Figure, ...]:
    """Return the facts that every front end says as they are; a new one needs no other change."""
    made = filter(None, map(_MADE.match, summary.notes))
    return tuple(Figure(found[1], brief=True) for found in made)


def _of_summary(summary: SiteSummary) -> list[Proposal]:
    """Return the proposals for a vmap that loops, which an order keeps, and for a slow logger."""
    found = [
        Proposal('vmap_method="expand_dims"', summary.loop_advice, ("ordered",)),
        Proposal(QUEUE_OPTION, summary.queue_advice),
    ]
    return [one for one in found if one.advice]


def unfinished(progress: SiteProgress, where: str, place: Place | None = None) -> SiteView:
    """Return the view of a site of the running cell, whose status is known at the end.

    Args:
        progress: its totals so far.
        where: names its place among the sites that are shown.
        place: maps a file and a line to a notebook cell.
    """
    failed, since = progress.errors, progress.running_ns
    running = Figure(f"running {since // 1_000_000_000:,} s", brief=True)
    fine = "running" if since >= _SLOW_NS else str(Status.KEPT)
    return SiteView(
        **_place(progress.site, where, place),
        consequence="raised" if failed else fine,
        calls=progress.calls,
        errors=(f"{failed:,} failed",) if failed else (),
        host_ns=progress.host_ns,
        figures=(running,) if since >= _SHOWN_NS else (),
    )


def _place(site: Site, where: str, place: Place | None) -> dict[str, Any]:
    located = place(site.file, site.line) if place else Located(None, site.line)
    return {
        "function": site.function,
        "flavor": site.flavor,
        "where": where,
        "line": site.line,
        "column": site.column,
        "cell": site.cell,
        "source": site.source,
        "cell_id": located.cell,
        "cell_line": located.line,
    }


_FACTS = SiteView.__dataclass_fields__.keys() - MEASURED


def _json(value: Any, brief: bool = False, names: Collection[str] = ()) -> Any:
    """Return the JSON of a view or of a field of one; what a variant does not have is absent.

    Args:
        value: the view, or a field.
        brief: leave out what has its default.
        names: the fields of the view; by default all.
    """
    if dataclasses.is_dataclass(value):
        return {
            field.name: _json(one, brief)
            for field in dataclasses.fields(value)
            if not names or field.name in names
            if (one := getattr(value, field.name)) is not None or isinstance(value, SiteView)
            if not (brief and one == field.default)
        }
    if isinstance(value, tuple):
        return [_json(one, brief) if isinstance(one, _PARTS) else one for one in value]
    return str(value) if isinstance(value, str) else value


_PARTS = (tuple, str, VariantView, DiagramView)
