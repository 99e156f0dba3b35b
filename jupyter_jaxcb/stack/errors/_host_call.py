"""From the exception of a host function to what XLA is told in its place."""

from __future__ import annotations

from typing import Any

from ...recording import LoweredSite, Site
from ..core import add_note
from . import _causes
from ._store import keep, numbered
from ._tracebacks import own_frames

_READ_ONLY = (
    "the arrays that a host function is called with are read-only: write into a copy, x.copy()"
)


class HostCallError(RuntimeError):
    """What XLA is told when a host function raised; `host_error` finds the exception itself.

    Attributes:
        number: of the error, among all of this process.
    """

    number = 0


def host_call_error(
    error: BaseException, lowered: LoweredSite, call: int, element: int | None
) -> HostCallError:
    """Keeps `error`, with a note on where it happened, and returns what XLA is told instead.

    Args:
        error: what the host function raised, or what is wrong with its answer.
        lowered: the site.
        call: the number of the host call, among all of the host function.
        element: of a looped vmap.
    """
    operands, _ = lowered.host_avals()
    site = lowered.site
    arguments = ", ".join(map(str, operands)) or "no arguments"
    places = [f"in call {call:,}"]
    if element is not None:
        places.append(f"in batch element {element}")
    if lowered.shard is not None:
        device = f" ({lowered.device})" if lowered.device else ""
        places.append(f"on shard {lowered.shard}{device}")
    by = f"raised by the {site.flavor} callback {site.function}, bound at {site.where}, "
    note = f"{by}{', '.join(places)}, called with {arguments}{_of_a_batch(lowered)}"
    add_note(error, note, instead_of=by)  # one exception may be raised again and again
    if type(error) is ValueError and any(map(_is_of_writing, error.args)):
        add_note(error, _READ_ONLY)
    BaseException.with_traceback(error, own_frames(error.__traceback__))
    return _told(error, note, lowered.site, others_may_wait=lowered.shard is not None)


def _is_of_writing(said: Any) -> bool:
    return isinstance(said, str) and said.endswith("is read-only")  # NumPy's words, and Cython's


def _of_a_batch(lowered: LoweredSite) -> str:
    methods = [level.method for level in lowered.levels if not level.looped]
    if not methods or lowered.site.flavor not in ("pure", "buffer"):  # the others have no choice
        return ""
    return (
        f" for a batch by vmap_method={methods[0]!r}; 'sequential' calls each batch element alone"
    )


def _told(error: BaseException, note: str, site: Site, others_may_wait: bool) -> HostCallError:
    kept = keep(error, note)
    _causes.expect(kept, site, others_may_wait=others_may_wait)
    told = HostCallError(kept.text)
    told.number = kept.number
    return told


def failed_on_another_device(number: int, process: int | None, site: Site) -> HostCallError:
    """What the other devices of a program are told of an error.

    Args:
        number: of the error; each process counts its own.
        process: in which the host function failed; None: in this one.
        site: of the call.
    """
    if process is None:
        kept = numbered(number)
        return HostCallError(kept.text if kept else "a host function failed; why is forgotten")
    error = HostCallError(f"{site.function} failed in process {process}, which says why")
    note = f"of the {site.flavor} callback {site.function}, bound at {site.where}"
    return _told(error, note, site, others_may_wait=False)
