"""Notes on a call site: repeated compilation, non-finite results, unfinished calls.

Notes are the same in every run, so they hold no times.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...recording import (
    Compilation,
    LoweredSite,
    Note,
    NoteKind,
    NotFinite,
    Outcome,
    Program,
    Recording,
    Running,
    Site,
)
from ._capabilities import CAPABILITIES
from ._reasons import HINTS, IN_VAIN, note_words, notes_of
from ._retraces import retraces
from ._words import call_words

_BEFORE = (
    "its program was compiled before JAX's callbacks were observed, so their lines and elided "
    "calls are unknown; call jax.clear_caches() and run it again"
)


class ProgramNote(NamedTuple):
    """A note on a program."""

    text: str
    hint: str = ""  # the same in a few words


def site_notes(
    recording: Recording,
    site: Site,
    outcomes: Sequence[Outcome],
    numbers: Sequence[int],
    about_programs: Sequence[ProgramNote],
) -> tuple[str, ...]:
    """Return the notes on one call site.

    Args:
        recording: the whole recording.
        site: the call site.
        outcomes: the outcomes of the site.
        numbers: the indices of the site's entries in `Recording.lowered`.
        about_programs: the notes of `program_notes`.
    """
    notes = [note for outcome in outcomes for note in outcome.notes]
    lowered = [recording.lowered[number] for number in numbers]
    notes += [Note(NoteKind.UNBATCHED, (fact.serves,)) for fact in lowered if fact.serves > 1]
    words: dict[NoteKind, str] = {}
    for capability in CAPABILITIES:
        words |= capability.words(site, lowered)
    words |= notes_of(site, library_of(lowered))
    found = [note_words(note, words.get(note.kind, "")) for note in notes]
    found += [note.text for note in about_programs]
    found += [_still_running(one, recording) for one in recording.running if one.lowered in numbers]
    for capability in CAPABILITIES:
        found += capability.notes(recording, numbers)
    found += [_BEFORE] * site.is_of_earlier_program
    found += [_not_finite(fact) for fact in recording.not_finite if fact.lowered in numbers]
    return tuple(dict.fromkeys(filter(None, found)))


def library_of(lowered: Iterable[LoweredSite]) -> str:
    """Return the library that makes the calls with a function of its own; empty for the user's."""
    return next((fact.library for fact in lowered if fact.library), "")


def site_hints(
    outcomes: Iterable[Outcome], about_programs: Iterable[ProgramNote], chosen: bool = False
) -> tuple[str, ...]:
    """Return what costs more than one may think, in a few words each.

    Args:
        outcomes: the outcomes of the site.
        about_programs: the notes of `program_notes`.
        chosen: whether the program says for which batch elements it is called.
    """
    kinds = (note.kind for outcome in outcomes for note in outcome.notes)
    found = [HINTS.get(kind, "") for kind in kinds if not (chosen and kind in IN_VAIN)]
    found += [note.hint for note in about_programs]
    return tuple(dict.fromkeys(filter(None, found)))


def program_notes(
    recording: Recording, sites: Iterable[Site], outcomes: Mapping[Site, Sequence[Outcome]]
) -> dict[Site, list[ProgramNote]]:
    """Return the notes on programs, once: at the first of `sites` that a program has."""
    compilations: dict[Program, list[Compilation]] = {}
    for one in recording.compilations:
        compilations.setdefault(one.program, []).append(one)
    found: dict[Site, list[ProgramNote]] = {}
    retraced: set[Program] = set()  # whose note is at an earlier site
    not_cached: set[Program] = set()
    for site in sites:
        programs = dict.fromkeys(outcome.program for outcome in outcomes.get(site, ()))
        here = [one for program in programs for one in compilations.get(program, ())]
        notes = found[site] = []
        for again in retraces(here):
            own = {one.program for one in again.compilations}
            note = ProgramNote(again.times + again.reason, again.hint)
            notes += [note] * (not own <= retraced)
            retraced |= own
        own = {one.program for one in here if one.not_cached}
        notes += [ProgramNote(_not_cached(recording))] * (not own <= not_cached)
        not_cached |= own
    return found


def _not_cached(recording: Recording) -> str:
    jax = f"JAX {recording.environment.get('jax', '')}".rstrip()
    return (
        f"its program is compiled in every process: the persistent compilation cache of {jax} does "
        "not store programs with host callbacks, that of JAX 0.11 does"
    )


def _still_running(call: Running, recording: Recording) -> str:
    element = f", batch element {call.element}," if call.element >= 0 else ""
    at = "".join(f", in {one.function}, {recording.where(one)}" for one in call.stack[:1])
    return f"call {call.number:,}{element} was still running when the recording ended{at}"


def _not_finite(fact: NotFinite) -> str:
    words = []
    if fact.produced:
        words.append(f"{call_words(fact.produced)} returned NaN or infinity for finite arguments")
    if fact.passed_on:
        words.append(
            f"{call_words(fact.passed_on)} returned NaN or infinity for non-finite arguments"
        )
    return "; ".join(words)
