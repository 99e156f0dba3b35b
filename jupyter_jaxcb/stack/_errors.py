"""From the exception of a host function to what XLA is told in its place."""

from __future__ import annotations

import contextlib

from ..recording import LoweredSite
from . import _causes
from ._frames import own_frames
from ._kept import keep, numbered


class HostCallError(RuntimeError):
    """What XLA is told when a host function raised; `host_error` finds the exception itself.

    Attributes:
        number: of the error, among all of this process.
    """

    number = 0


def explain(
    error: BaseException, lowered: LoweredSite, call: int, lane: int | None
) -> HostCallError:
    """Keeps `error`, with a note on where it happened, and returns what XLA is told instead.

    Args:
        error: what the host function raised, or what is wrong with its answer.
        lowered: the site.
        call: the number of the host call, among all of the host function.
        lane: of a looped vmap.
    """
    operands, _ = lowered.host_avals()
    site = lowered.site
    arguments = ", ".join(map(str, operands)) or "no arguments"
    places = [f"in call {call:,}"]
    if lane is not None:
        places.append(f"in lane {lane}")
    if lowered.shard is not None:
        device = f" ({lowered.device})" if lowered.device else ""
        places.append(f"on shard {lowered.shard}{device}")
    note = (
        f"raised by the {site.flavor} callback {site.function}, bound at {site.where}, "
        f"{', '.join(places)}, called with {arguments}"
    )
    add_note(error, note)
    BaseException.with_traceback(error, own_frames(error.__traceback__))
    kept = keep(error, note)
    _causes.expect(kept, site, others_may_wait=lowered.shard is not None)
    told = HostCallError(kept.text)
    told.number = kept.number
    return told


def failed_elsewhere(number: int) -> HostCallError:
    """What the other devices of a program are told of the error `number`."""
    kept = numbered(number)
    return HostCallError(kept.text if kept else "a host function failed in another process")


def add_note(error: BaseException, note: str) -> None:
    """Adds `note`, once; a class that allows no new attributes gets it all the same."""
    with contextlib.suppress(Exception):  # whatever a class makes of its attributes
        notes = vars(error).setdefault("__notes__", [])
        if note not in notes:
            notes.append(note)
