"""Say what a queue saves, and what a full one costs, each with its figure."""

from __future__ import annotations

from collections.abc import Iterator

from ...recording import OBSERVED, PartKind, Site
from ..summary import time_words
from ._callback_advice import drop_in
from ._figures import MUCH, SOME, Figures, took

_BUSY = 0.8  # of the wall time: a queue with more room would not end sooner


def queue_advice(figures: Figures) -> list[str]:
    """Return sentences about callbacks that could be queued, and about full queues."""
    return [*(words for _, words in queueable(figures)), *_full_queues(figures)]


def alone_in_queue(figures: Figures) -> Iterator[str]:
    """Say how long only queued host functions ran, if that is much."""
    total = figures.profile.of_kind(PartKind.QUEUED)
    if figures.share(total) >= MUCH:
        most = figures.parts(PartKind.QUEUED)[0]
        yield (
            f"Only queued host functions ran for {took(figures, total)}, mostly "
            f"{figures.named(most)}: the program had ended, or waited for them."
        )


def queueable(figures: Figures) -> Iterator[tuple[Site, str]]:
    """Yield the callbacks that the program waits for without needing a result, and what to say."""
    for part in figures.parts(PartKind.HOST):
        if part.lowered < 0:
            continue
        fact = figures.recording.lowered[part.lowered]
        flavor = fact.site.flavor.removeprefix(OBSERVED)
        if flavor not in ("debug", "io") or fact.results or fact.library:
            continue
        crossings = figures.parts(PartKind.CROSSING)
        own = sum(one.wall_ns for one in crossings if one[1:3] == part[1:3])  # name and place
        waited = part.wall_ns + own
        # What the program can do meanwhile: at the end of the block, it waits for the queue.
        saved = min(part.wall_ns, figures.profile.wall_ns - waited)
        if figures.share(saved) >= SOME and figures.run_in_python(figures.rows(part)):
            observed = flavor != fact.site.flavor
            how = f"jaxcb.{drop_in(fact)}(..., queued=True)" if observed else "queued=True"
            yield (
                fact.site,
                f"The program waited {time_words(waited)} for {figures.named(part)}, whose result "
                f"it does not need. With {how} it goes on meanwhile, which saves up to "
                f"{time_words(saved)}.",
            )


def _full_queues(figures: Figures) -> Iterator[str]:
    for part in figures.parts(PartKind.WAITING):
        if figures.share(part.wall_ns) < SOME:
            continue
        queued = figures.parts(PartKind.QUEUED)
        busy = sum(one.busy_ns for one in queued if one.lowered == part.lowered)
        left = figures.profile.wall_ns - busy
        way = (
            f"Its calls took {time_words(busy)}, one after the other, so more room would not help. "
            "Call it less often, or drop calls with on_full='drop'."
            if figures.share(busy) >= _BUSY
            else f"More room, with jaxcb.set_queue_limit, saves up to "
            f"{time_words(min(part.wall_ns, left))}."
        )
        yield (
            f"The program waited {time_words(part.wall_ns)} for room in the queue of "
            f"{figures.named(part)}. {way}"
        )
