"""Sum up a recording in one line: problems first, then the functions that are fine."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ...recording import Reason, Recording, Status, on_one_line
from ..summary import (
    INSTEAD_OF,
    QUEUE_HINT,
    SIGNS,
    TONES,
    WORDS,
    SiteSummary,
    call_words,
    counted,
    folded,
    is_costly,
    not_finite_words,
    one_shape,
    shorten,
    summarize,
    time_words,
)
from ._time import time_split

LISTED = 4  # problems that are described, or functions that are named
_NAMED = 3  # call sites with one problem that are named
_LONGEST = 60  # characters of a name, an error or a shape
_PROBLEMS = ("error", "warning")  # tones
_COSTS = SIGNS["not_finite"]
_FEWER = (Status.DEDUPLICATED, Status.HOISTED, Status.FEWER)
_NEVER_CALLED = (Status.UNUSED, Status.OPTIMIZED_AWAY)
_MORE = {  # counts the parts that are left out, by tone
    "error": f"{SIGNS['raised']} {{count}} more raised",
    "warning": f"{SIGNS['not_finite']} {{count}} more with warnings",
    "kept": "{count} more fine",
}


class Part(NamedTuple):
    """One part of the headline.

    Attributes:
        tone: how much it matters, a value of `TONES`; the front end colors it.
        text: one clause; its sign repeats the tone.
    """

    tone: str
    text: str


def headline(sites: Sequence[SiteSummary], *, times: bool = False) -> list[Part]:
    """Return the parts of the summary line, worst first.

    First come the functions that raised, then those that returned NaN or infinity for finite
    arguments or have a call site that is never called because its result is unused, each with the
    calls of its other sites, and those with a call that the user stopped. Fewer calls than the
    program text says are no problem: it has their results. At most `LISTED` problems are described,
    or functions named if there are none; the others are counted.

    Args:
        sites: the call sites.
        times: begin the functions that are fine with the one that took much of the time.
    """
    functions = _by_function(sites)
    if len(functions) == 1:
        (own,) = functions
        cost = _cost(own) if times else []
        return _visible([*_sorted(_problems(own)), *cost, *_details(own)[bool(cost) :]])
    problems = _sorted(part for own in functions for part in _with_the_rest(own))
    fine = [own for own in functions if not _problems(own)]
    if len(problems) + len(fine) > LISTED:  # some are only counted
        fine.sort(key=lambda own: not _has_fewer(own))
    if times:
        fine.sort(key=lambda own: not is_costly(own))
    parts = problems + [part for own in fine for part in (times and _cost(own)) or [_brief(own)]]
    named = parts if len(parts) <= LISTED else (problems or parts)[:LISTED]
    fewer = sum(map(_has_fewer, fine[max(0, len(named) - len(problems)) :]))
    return _visible([*named, *_more(parts[len(named) :], fewer)])


def not_recorded(count: int) -> str:
    """Say how many of JAX's own callbacks are in the programs, but not in the recording."""
    return f"{counted(count, 'callback')} of JAX not recorded"


class View:
    """A recording with what all reports say about it, which is found out once.

    Attributes:
        recording: the recording.
        sites: its call sites, in the order of rows.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.sites = folded(recording, summarize(recording))

    @functools.cached_property
    def headline(self) -> list[Part]:
        """Its headline, which is the same in every run."""
        return headline(self.sites) + self._others

    @functools.cached_property
    def timed_headline(self) -> list[Part]:
        """Its headline, with what took a third of the time or more; empty if nothing did."""
        costly = any(map(is_costly, _by_function(self.sites)))
        return headline(self.sites, times=True) + self._others if costly else []

    @property
    def _others(self) -> list[Part]:
        """What is said of JAX's own callbacks, which are not recorded unless they are observed."""
        count = self.recording.not_observed
        way = "%%jax_record --jax" if self.recording.cells else "observe_jax()"
        them = "it" if count == 1 else "them"
        words = f"{not_recorded(count)}; {way} records {them}"
        return [Part("quiet", words)] if count and not self.recording.ahead else []

    def headline_words(self, times: bool) -> str:
        """Return the headline as text; with what took the time if `times` is true."""
        time = time_split(self.recording, self.sites) if times else ""
        parts = (times and self.timed_headline) or self.headline
        return " · ".join(filter(None, (*(part.text for part in parts), time)))


def view(recording: Recording | View) -> View:
    """Return the view of a recording."""
    return recording if isinstance(recording, View) else View(recording)


def _visible(parts: Sequence[Part]) -> list[Part]:
    """Escape control characters: one that reverses the text would turn the rest of a part round."""
    return [Part(tone, on_one_line(text)) for tone, text in parts]


def _by_function(sites: Sequence[SiteSummary]) -> list[list[SiteSummary]]:
    found: dict[tuple[str, str], list[SiteSummary]] = {}
    for summary in sites:
        found.setdefault((summary.site.function, summary.site.flavor), []).append(summary)
    return list(found.values())


def _sorted(problems: Iterable[Part]) -> list[Part]:
    return sorted(problems, key=lambda part: (*_PROBLEMS, "quiet").index(part.tone))


def _problems(own: Sequence[SiteSummary]) -> list[Part]:
    """Describe the problems of a function, each kind once, with the call sites that have it."""
    found = []
    if raised := [one for one in own if one.consequence == "raised"]:
        found.append(
            Part("error", _signed("raised", f"{_which(raised, own)} raised {_errors(raised)}"))
        )
    if stopped := [one for one in own if one.consequence == "stopped"]:
        words = f"{_which(stopped, own)} {stopped[0].status_words}"
        found.append(Part("quiet", _signed("stopped", words)))
    if nan := [one for one in own if one.consequence == "not_finite"]:
        words = f"{_which(nan, own)} returned {not_finite_words(nan)}"
        found.append(Part("warning", _signed("not_finite", words)))
    if dropped := [one for one in own if one.consequence == "dropped"]:
        words = " and ".join(one.status_words for one in dropped)
        found.append(Part("warning", _signed("dropped", f"{_which(dropped, own)}: {words}")))
    if never_called := [one for one in own if one.consequence in _NEVER_CALLED]:
        words = ", ".join(dict.fromkeys(WORDS[one.consequence] for one in never_called))
        words = f"{_which(never_called, own)} never called ({words})"
        found.append(Part("warning", _signed(Status.UNUSED, words)))
    if impure := [one for one in own if one.consequence.startswith("impure")]:
        words = " or ".join(dict.fromkeys(WORDS[one.consequence] for one in impure))
        words += " calls" if words == Status.FEWER.words else ""
        words = f"{_which(impure, own)} {words} in spite of side effects"
        found.append(Part("warning", _signed(impure[0].consequence, words)))
    if outside := [one for one in own if _is_in_no_program(one)]:
        name, places = shorten(own[0].site.function, _LONGEST), _places(outside, own)
        words = f"{name}, {places}: traced, but in no program that ran; see %jax_explain"
        found.append(Part("quiet", _signed(Status.UNKNOWN, words)))
    return found


def _is_in_no_program(site: SiteSummary) -> bool:
    reasons = {cause.reason for cause in site.causes}
    return site.consequence == Status.UNKNOWN and reasons == {Reason.IN_NO_PROGRAM}


def _signed(consequence: str, words: str) -> str:
    return f"{SIGNS[consequence]} {words}"


def _with_the_rest(own: Sequence[SiteSummary]) -> list[Part]:
    """Describe the problems of a function, and count the calls of its other call sites."""
    problems = _problems(own)
    told = (*_PROBLEMS, "stopped")
    rest = [one for one in own if not {one.consequence, TONES[one.consequence]} & {*told}]
    if not problems or not any(one.expected != 0 if one.ahead else one.calls for one in rest):
        return problems
    tone, text = problems[-1]
    return [*problems[:-1], Part(tone, f"{text}; {_calls(rest)} elsewhere")]


def _which(sites: Sequence[SiteSummary], own: Sequence[SiteSummary]) -> str:
    """Name a function and those of its call sites that have a problem, if not all have it."""
    name = shorten(own[0].site.function, _LONGEST)
    if len(sites) == len(own):
        return name
    places = _places(sites, own)
    return f"{name}: {places}" if places.endswith("sites") else f"{name}, {places}:"


def _places(sites: Sequence[SiteSummary], own: Sequence[SiteSummary]) -> str:
    """Return ``line 3 and line 5``, or ``4 of 6 call sites``."""
    *places, last = dict.fromkeys(one.where for one in sites)
    if len(places) >= _NAMED:
        return f"{len(sites):,} of {len(own):,} call sites"
    return " and ".join(filter(None, (", ".join(places), last)))


def _errors(having: Sequence[SiteSummary]) -> str:
    first, *more = (error for one in having for error in one.errors)
    return shorten(error_line(first), _LONGEST) + (f" and {len(more)} more" if more else "")


def error_line(error: str) -> str:
    """Return the line of an error that names it: the last one of a traceback, else the first."""
    lines = [line for line in error.splitlines() if line.strip()] or ["an error"]
    return lines[-1] if lines[0].startswith("Traceback") else lines[0]


def _details(own: Sequence[SiteSummary]) -> list[Part]:
    """Describe the only function of a recording; nothing more if it is never called."""
    if _problems(own) and not any(one.calls for one in own) and not own[0].ahead:
        return []
    site = own[0].site
    shapes = one_shape(view.shapes for one in own for view in one.variants)
    words = [shorten(site.function, _LONGEST), site.flavor, _calls(own), shorten(shapes, _LONGEST)]
    return [
        *(Part("kept", text) for text in words if text),
        *(Part("quiet", hint) for hint in _hints(own)),
    ]


def _hints(own: Sequence[SiteSummary]) -> list[str]:
    looped, calls = sum(one.loop.calls for one in own), sum(one.calls for one in own)
    some = f" in {looped:,} of {call_words(calls)}" if looped < calls else ""
    hints = [f"one call for each batch element{some}"] if looped else []
    return list(dict.fromkeys([*hints, *(hint for one in own for hint in one.hints)]))


def _cost(own: Sequence[SiteSummary]) -> list[Part]:
    """Return the name of a function whose calls took much of the time, and how much; or nothing."""
    if not is_costly(own):
        return []
    took, share = sum(one.host_ns for one in own), sum(one.share for one in own)
    name = shorten(own[0].site.function, _LONGEST)
    cost = Part("warning", f"{_COSTS} {name} {time_words(took)} ({100 * share:.0f} %)")
    return [cost, *[Part("quiet", QUEUE_HINT)] * any(one.queue_advice for one in own)]


def _brief(own: Sequence[SiteSummary]) -> Part:
    """Describe a function that has no problem."""
    best = next((one for one in own if one.calls), own[0])
    name = shorten(best.site.function, _LONGEST)
    hints = f" ({', '.join(_hints(own))})" if _hints(own) else ""
    return Part(TONES[best.consequence], f"{name} {_calls(own)}{hints}")


def _has_fewer(own: Sequence[SiteSummary]) -> bool:
    return any(one.status in _FEWER for one in own)


def _more(others: Sequence[Part], fewer: int) -> list[Part]:
    """Count the parts that are left out, by tone, worst first.

    Of the functions that are fine, `fewer` have fewer calls than the program text says.
    """
    tones = [part.tone if part.tone in _PROBLEMS else "kept" for part in others]
    return [
        Part(
            tone,
            words.format(count=f"{tones.count(tone):,}")
            + (f" ({fewer:,} with fewer calls)" if fewer and tone == "kept" else ""),
        )
        for tone, words in _MORE.items()
        if tone in tones
    ]


def _calls(own: Sequence[SiteSummary]) -> str:
    """Count calls; if the program text says more: ``1 call instead of 50``."""
    ahead = any(one.ahead for one in own)
    made = [one.expected if one.ahead else one.calls for one in own]
    if None in made:
        return "calls depend on data" + _status(own)
    calls, written = sum(filter(None, made)), [one.written for one in own]
    words = call_words(calls) + " per run" * ahead
    if _has_fewer(own) and None not in written and calls < sum(filter(None, written)):
        words = INSTEAD_OF.format(calls=words, written=f"{sum(filter(None, written)):,}")
    return words + _status(own)


def _status(own: Sequence[SiteSummary]) -> str:
    """Return `` (hoisted)``, or `` (line 4 hoisted)`` if not all sites are; empty if all are kept.

    Of sites with several statuses, only those with fewer calls than the program text says are told.
    """
    kinds = dict.fromkeys(one.consequence for one in own)
    if len(kinds) == 1 and TONES[own[0].consequence] == "quiet":
        return f" ({WORDS[own[0].consequence]})"
    words = [
        f"{_places([one for one in own if one.consequence == kind], own)} {WORDS[kind]}"
        for kind in kinds
        if kind in _FEWER
    ]
    return f" ({', '.join(words)})" if words else ""
