"""What summaries say about masked calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ...recording import OBSERVED, LoweredSite, NoteKind, Recording, Site, VmapLevel
from ._reasons import NOTES
from ._words import counted

# Of calls that a mask leaves out, if it is that of ``.where``.
_WHERE_TRUE = {
    NoteKind.ALL_BRANCHES_RUN: (
        "the predicate is batched, so batch elements that do not take its branch may be called, "
        "too, where the mask is true"
    ),
    NoteKind.FINISHED_ELEMENTS_RUN: (
        "batch elements that have finished the loop are called again only where the mask is true"
    ),
}


class Mask(NamedTuple):
    """The mask of one variant of a call site."""

    batched: tuple[bool, ...]  # per vmap, innermost first: did it map over the mask?
    needed: int  # batch elements for which it was true; a crossing without vmap counts as one
    elements: int  # all batch elements; 0 if nothing ran
    reached: bool = False  # it is that of the branches and loops around the call alone

    @classmethod
    def of(
        cls, batched: tuple[bool, ...] | None, recording: Recording, numbers: Iterable[int]
    ) -> Mask | None:
        """Return the mask of some entries of `Recording.lowered`; None if `batched` is None."""
        if batched is None:
            return None
        wanted = set(numbers)
        uses = [use for use in recording.masks if use.lowered in wanted]
        needed, elements = sum(use.needed for use in uses), sum(use.elements for use in uses)
        reached = all(recording.lowered[number].reached for number in wanted)
        return cls(batched, needed, elements, reached)


def split(fact: LoweredSite) -> tuple[tuple[VmapLevel, ...], tuple[bool, ...] | None]:
    """Return the vmap levels for the arguments, and which of them map over the mask, if any."""
    if not fact.masked:
        return fact.levels, None
    arguments = tuple(level._replace(batched=level.batched[:-1]) for level in fact.levels)
    return arguments, tuple(level.batched[-1] for level in fact.levels)


def decides(lowered: Iterable[LoweredSite]) -> bool:
    """Return whether a mask decides for which batch elements a site is called."""
    return any(fact.masked for fact in lowered)


def could_have_mask(site: Site, lowered: Iterable[LoweredSite]) -> bool | None:
    """Return whether a mask could leave out calls of a site; None if they have a mask."""
    lowered = list(lowered)
    if decides(lowered):
        return None
    if any(fact.library for fact in lowered):
        return False
    return site.flavor.removeprefix(OBSERVED) in ("pure", "io", "debug", "buffer")


def words(site: Site, lowered: Iterable[LoweredSite]) -> Mapping[NoteKind, str]:
    """Return the notes on calls in vain: a mask leaves some out, or would do so."""
    lowered = list(lowered)
    could = could_have_mask(site, lowered)
    if could is None:
        return _WHERE_TRUE
    # Registered functions get a mask where JAX lets one through.
    if site.is_of_jax or any(fact.drop_in for fact in lowered):
        advice = f"register the function with jaxcb.{site.flavor.removeprefix(OBSERVED)}"
    else:
        advice = "pass the predicate with .where"
    advice = f"{advice} to call it only for the elements that reach the call"
    return {kind: f"{NOTES[kind]}; {advice}" for kind in _WHERE_TRUE} if could else {}


def notes(recording: Recording, numbers: Sequence[int]) -> list[str]:
    """Say how often the mask of masked calls was true, or how many elements reached a call."""
    counts: Counter[tuple[str, str]] = Counter()
    trues: Counter[tuple[str, str]] = Counter()
    for mask in recording.masks:
        if mask.lowered in numbers:
            fact = recording.lowered[mask.lowered]
            if fact.reached and not any(level.batched[-1] for level in fact.levels):
                continue  # the call serves all elements, if any of them reaches it
            words = (
                "{needed:,} of {elements} reached it" if fact.reached
                else "its mask was true for {needed:,} of {elements}"
            )  # fmt: skip
            kind = words, "batch element" if fact.levels else "call"
            counts[kind] += mask.elements
            trues[kind] += mask.needed
    return [
        words.format(needed=trues[words, of], elements=counted(count, of))
        for (words, of), count in counts.items()
        if count
    ]


def not_made(recording: Recording) -> Counter[int]:
    """Count, by index into `Recording.lowered`, the calls that a mask left out."""
    found: Counter[int] = Counter()
    for mask in recording.masks:
        found[mask.lowered] += mask.elements - mask.needed
    return found
