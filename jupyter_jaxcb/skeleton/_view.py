"""The one JSON of a recording, and what prints it as text and HTML.

`view` writes every sentence. Text, HTML, saved output and the front end print them as they are. Its
part `facts` is equal in every run of the same code; `measured` has times.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypedDict, get_args, get_type_hints

import numpy as np

from ..recording import element, on_one_line
from ._recording import Aval, Recording, SiteRecord, prints

MIME_TYPE = "application/vnd.jupyter-jaxcb.view+json"


class ShapeView(TypedDict):
    """One shape of the host calls of a line."""

    arrays: str  # "(), () → ()"
    vmap: str  # "vmap 3, sequential"; empty without a vmap
    calls: str  # "3 calls"


class SiteView(TypedDict):
    """One call site."""

    function: str
    flavor: str
    where: str  # "line 3", "model.py:12"
    line: int  # where a badge stands; 1-based
    tone: str  # "kept", "quiet", "warning", "error": the colour
    status: str  # "● 3 calls", "⚠ unused"
    reason: str  # why calls are missing; empty if none are
    advice: str  # what to do about it
    shapes: list[ShapeView]
    errors: list[str]


class FactsView(TypedDict):
    """What is equal in every run of the same code."""

    headline: str
    sites: list[SiteView]


class MeasuredView(TypedDict):
    """What differs from run to run."""

    times: list[str]  # for each site: "12.3 µs"
    site: list[int]  # for each call: index into the sites
    start_ns: list[int]  # for each call, since the first began
    duration_ns: list[int]  # for each call


class View(TypedDict):
    """Everything that is shown of a recording."""

    facts: FactsView
    measured: MeasuredView


class Status(NamedTuple):
    """How a status is shown."""

    sign: str
    tone: str
    words: str  # empty: the number of calls says it


STATUSES = {
    "raised": Status("✕", "error", "raised"),
    "kept": Status("●", "kept", ""),
    "not_run": Status("○", "quiet", "not run"),
    "not_reached": Status("○", "quiet", "not reached"),
    "unused": Status("⚠", "warning", "unused"),
    "optimized_away": Status("⚠", "warning", "optimized away"),
    "deduplicated": Status("◐", "quiet", "deduplicated"),
    "hoisted": Status("◐", "quiet", "hoisted"),
    "fewer": Status("◐", "quiet", "fewer"),
    "unknown": Status("?", "quiet", "unknown"),
}
# What `Verdict.reason` stands for: why, and what to do.
REASONS = {
    "": ("", ""),
    "result_unused": ("nothing uses its result", "use the result, or register it with @io"),
    "result_not_needed": (
        "XLA found that nothing needs its result",
        "use the result, or register it with @io",
    ),
    "equal_calls": (
        "XLA merged equal calls, or JAX dropped some whose result is unused",
        "register it with @io if every call matters",
    ),
    "loop_invariant": (
        "XLA moved it out of a loop, or replaced a loop of one turn by its body",
        "register it with @io if every call matters",
    ),
    "fewer": (
        "XLA merged or dropped calls, and moved calls out of loops",
        "register it with @io if every call matters",
    ),
    "unreadable": ("the compiled program cannot be read", ""),
    "not_run": ("its program was compiled but did not run", "run the program"),
    "not_reached": ("no run entered its branch or loop", ""),
    "never_reached": ("no run can enter its branch or loop, or its batch is empty", ""),
}


def view(recording: Recording) -> View:
    """Return all that is shown of a recording: one row for each call site."""
    rows = recording.calls
    lines: dict[Any, list[int]] = {}  # by site: the numbers of its records
    for number, record in enumerate(recording.sites):
        lines.setdefault(record.site, []).append(number)
    line_of = np.zeros(len(recording.sites), int)
    for place, numbers in enumerate(lines.values()):
        line_of[numbers] = place
    counts = np.bincount(rows["site"], minlength=len(recording.sites))
    counts = counts + np.array(recording.not_kept, int)
    sites = [_site(recording, numbers, counts) for numbers in lines.values()]
    durations, of_call = rows["end_ns"] - rows["start_ns"], line_of[rows["site"]]
    spent = np.bincount(of_call, durations, minlength=len(lines))
    start = rows["start_ns"] - (rows["start_ns"].min() if len(rows) else 0)
    return {
        "facts": {"headline": _headline(len(rows), sum(recording.not_kept), sites), "sites": sites},
        "measured": {
            "times": [_duration(ns) if ns else "" for ns in spent.tolist()],
            "site": of_call.tolist(),
            "start_ns": start.tolist(),
            "duration_ns": durations.tolist(),
        },
    }


def _site(recording: Recording, numbers: list[int], counts: np.ndarray) -> SiteView:
    records = [recording.sites[number] for number in numbers]
    site, calls = records[0].site, int(counts[numbers].sum())
    codes = np.unique(recording.calls["error"][np.isin(recording.calls["site"], numbers)])
    errors = [on_one_line(recording.errors[code - 1]) for code in codes.tolist() if code]
    verdict = next((r.verdict for r in records if r.verdict.status != "kept"), records[0].verdict)
    sign, tone, words = STATUSES.get("raised" if errors else verdict.status, STATUSES["unknown"])
    reason, advice = REASONS.get(verdict.reason, REASONS[""])
    asked, made = verdict.asked, verdict.made
    instead = ""
    if asked is not None and made is not None and made < asked:
        where = (
            f"in {alike} of {len(records)} programs, "
            if (alike := sum(r.verdict == verdict for r in records)) < len(records)
            else ""
        )
        instead = f"{where}{_counted(made, 'call')} instead of {asked:,}"
    counted = _counted(calls, "call") if calls or not words else ""
    file = on_one_line(site.file.replace("\\", "/").rpartition("/")[2])
    return {
        "function": on_one_line(site.function),
        "flavor": on_one_line(site.flavor),
        "where": f"line {site.line}" if site.cell else f"{file}:{site.line}",
        "line": site.line,
        "tone": tone,
        "status": f"{sign} {' · '.join(filter(None, (words, counted)))}",
        "reason": ": ".join(filter(None, (instead, reason))),
        "advice": advice,
        "shapes": [
            {"arrays": _arrays(r), "vmap": _vmap(r), "calls": _counted(int(counts[n]), "call")}
            for n, r in zip(numbers, records, strict=True)
        ],
        "errors": errors,
    }


def _headline(kept: int, not_kept: int, sites: list[SiteView]) -> str:
    calls = _counted(kept + not_kept, "host call")
    full = f", of which {kept:,} are in the log" if not_kept else ""
    warnings = sum(site["tone"] in ("warning", "error") for site in sites)
    return f"{calls}{full}" + (f" · {_counted(warnings, 'line')} to look at" if warnings else "")


def _arrays(record: SiteRecord) -> str:
    def shapes(avals: tuple[Aval, ...]) -> str:
        return ", ".join(str(aval.shape) for aval in avals) or "nothing"

    return f"{shapes(record.operands)} → {shapes(record.results)}"


def _vmap(record: SiteRecord) -> str:
    sizes = " × ".join(f"vmap {level.size}" for level in reversed(record.levels))
    return f"{sizes}, {on_one_line(record.levels[0].method)}" if sizes else ""


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'s' * (count != 1)}"


def _duration(ns: float) -> str:
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= 0.9995 * size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def text(shown: View) -> str:
    """Print a view as text, one line for each site."""
    lines = [shown["facts"]["headline"]]
    for site, time in zip(shown["facts"]["sites"], shown["measured"]["times"], strict=True):
        several = len(site["shapes"]) > 1
        shapes = [
            " · ".join(filter(None, (s["arrays"], s["vmap"], s["calls"] if several else "")))
            for s in site["shapes"]
        ]
        parts = site["function"], site["flavor"], site["where"], site["status"], *shapes, time
        lines.append(" · ".join(filter(None, parts)))
        below = site["reason"], site["advice"], *site["errors"]
        lines += [f"    {sentence}" for sentence in below if sentence]
    return "\n".join(lines)


def html(shown: View) -> str:
    """Print a view as HTML, for pages without our front end."""
    facts = shown["facts"]
    return element(
        "table",
        element("caption", facts["headline"]),
        *(
            element(
                "tr",
                element("td", f"{site['function']} · {site['flavor']}"),
                element("td", site["where"]),
                element("td", site["status"], class_=f"jaxcb-{site['tone']}"),
                element("td", " ".join(shape["arrays"] for shape in site["shapes"])),
                element(
                    "td", ". ".join(filter(None, (site["reason"], site["advice"], *site["errors"])))
                ),
            )
            for site in facts["sites"]
        ),
    )


@prints
def mimebundle(recording: Recording) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return data, which is equal in every run, and metadata with times."""
    shown = view(recording)
    data = {MIME_TYPE: shown["facts"], "text/html": html(shown), "text/plain": text(shown)}
    return data, {MIME_TYPE: shown["measured"]}


def typescript() -> str:
    """Return the types of the JSON for the front end, which has no others."""
    names = {str: "string", int: "number", bool: "boolean"}
    lines = ["// Written by jupyter_jaxcb.skeleton.typescript(); do not edit."]
    for part in (ShapeView, SiteView, FactsView, MeasuredView):
        lines += ["", f"/** {part.__doc__} */", f"export interface {part.__name__} {{"]
        for field, kind in get_type_hints(part).items():
            (item,) = get_args(kind) or (kind,)
            many = "[]" if item is not kind else ""
            lines.append(f"  {field}: {names.get(item, item.__name__)}{many};")
        lines.append("}")
    return "\n".join([*lines, ""])
