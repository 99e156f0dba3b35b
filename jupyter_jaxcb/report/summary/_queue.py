"""What summaries say about queued calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ...recording import LoweredSite, NoteKind, QueueUse, Recording
from ._words import call_words

QUEUE_OPTION = "queued=True"
QUEUE_HINT = f"{QUEUE_OPTION} would not wait for it"
ADVICE = "the program waited {time} for it, and needs no result; with "
ADVICE += f"{QUEUE_OPTION} it goes on meanwhile"
NOTES = {NoteKind.QUEUED: "queued: the program does not wait for its calls"}


def notes(recording: Recording, numbers: Sequence[int]) -> list[str]:
    """Count the queued calls of a site that were not made."""
    return [_use_words(use) for use in recording.queue if use.lowered in numbers]


def ends_runs(fact: LoweredSite) -> bool:
    """Return whether a failed call ends the run of its program: not after the run went on."""
    return not fact.queued


def not_made(recording: Recording) -> Counter[int]:
    """Count, by index into `Recording.lowered`, the calls that the queue dropped or still holds."""
    found: Counter[int] = Counter()
    for use in recording.queue:
        found[use.lowered] += use.full + use.ended + use.left + use.skipped
    return found


def _use_words(use: QueueUse) -> str:
    whys = (
        (use.full, "dropped, because the queue was full"),
        (use.ended, "dropped from the queue by an interrupt or by drop_queued"),
        (use.left, "still queued or running when the recording ended"),
        (use.skipped, "not made, because an earlier batch element failed"),
    )
    return "; ".join(f"{call_words(count)} {why}" for count, why in whys if count)
