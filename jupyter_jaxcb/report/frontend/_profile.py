"""Build what the front end shows of a profile."""

from __future__ import annotations

from ...recording import OBSERVED, Recording, Site
from ..profile import KINDS, Figures, advice, headline, notes, queueable
from ._documents import ProfileView
from ._site_view import Proposal


def proposals(recording: Recording) -> dict[Site, list[Proposal]]:
    """Return what the advice of a profile proposes for registered callbacks, by call site."""
    found: dict[Site, list[Proposal]] = {}
    figures = Figures.of(recording)
    for site, words in queueable(figures) if figures else ():
        if not site.flavor.startswith(OBSERVED):
            found.setdefault(site, []).append(Proposal("queued=True", words))
    return found


def profile_facts(recording: Recording, base_ns: int | None) -> ProfileView | None:
    """Return the profile as the front end reads it; None if there is none.

    Args:
        recording: the recording.
        base_ns: the start of its first call; None: there are no calls.
    """
    figures = Figures.of(recording)
    if figures is None:
        return None
    profile = figures.profile
    kinds = figures.kinds
    place = {kind: number for number, (kind, _) in enumerate(kinds)}
    return {
        "wall_ns": profile.wall_ns,
        "start_ns": None if base_ns is None else profile.start_ns - base_ns,
        "headline": headline(figures),
        "advice": advice(figures),
        "notes": notes(figures),
        "kinds": [{"id": k, "name": KINDS[k].words, "wall_ns": ns} for k, ns in kinds],
        "parts": [
            {
                "kind": place[part.kind],
                "name": part.name,
                "where": figures.where(part),
                "wall_ns": part.wall_ns,
                "busy_ns": part.busy_ns,
                "count": part.times,
            }
            for part in profile.parts
        ],
        "lanes": [{"name": lane.name, "spans": list(lane.spans)} for lane in profile.lanes],
    }
