"""Build the error that is raised into XLA for a failed host call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...recording import WHOLE_BATCH, Aval, Frame, LoweredSite, Site, cell_number, value_words
from ..call import AddedName
from . import _causes
from ._error_text import add_note, attribute_of
from ._store import error_by_number, keep, keep_of_jax
from ._tracebacks import own_frames, with_callers

_READ_ONLY = "the arguments of a host function are read-only: write into a copy, x.copy()"


class HostCallError(RuntimeError):
    """The error raised into XLA for a host function's exception, which `host_error` returns.

    Attributes:
        number: counts the host errors of this process.
    """

    number = 0


def host_call_error(
    error: BaseException,
    lowered: LoweredSite,
    call: int,
    element: int | None,
    arguments: Sequence[Any],
) -> HostCallError:
    """Keep `error`, add a note on where it happened, and return the error to raise into XLA.

    Args:
        error: the host function's exception, or a result error.
        lowered: the site.
        call: the number of the host call, counted per host function.
        element: the batch element of a looped vmap, if any.
        arguments: of the call, whose values are not in JAX's message: they may change.
    """
    site, which = lowered.site, f"call {call:,} since registration"
    by = _bound(site, named=True)
    # A buffer function may have overwritten an argument that shares its memory with a result.
    kept = () if site.flavor == "buffer" else arguments
    after = _after(which, lowered, element, kept)
    add_note(error, f"{by}{after}", instead_of=by)  # it may be raised again
    if type(error) is ValueError and any(map(_is_read_only_error, error.args)):
        add_note(error, _READ_ONLY)
    inside = own_frames(attribute_of(error, "__traceback__"))
    BaseException.with_traceback(error, with_callers(inside, lowered))
    note = f"{_bound(site, named=False)}{_after(which, lowered, element)}"
    return _kept(error, note, site, others_may_wait=lowered.shard is not None)


def expect_error_of_jax(
    error: BaseException, lowered: LoweredSite, call: int, element: int | None
) -> None:
    """Keep the `error` that one of JAX's own callbacks raises into XLA, and add a note to it.

    It becomes the cause of the error that JAX raises, which stays the same apart from that.

    Args:
        error: the host function's exception, with its traceback.
        lowered: the site.
        call: the number of the host call among those recorded at the site.
        element: the batch element, if it is known.
    """
    by = _bound(lowered.site, named=True)
    after = _after(f"recorded call {call:,} of this site", lowered, element)
    add_note(error, f"{by}{after}", instead_of=by)
    inside = own_frames(attribute_of(error, "__traceback__"))
    kept = keep_of_jax(error, with_callers(inside, lowered))
    _causes.expect(kept, lowered.site, others_may_wait=lowered.devices > 1)


def _after(
    call: str, lowered: LoweredSite, element: int | None, arguments: Sequence[Any] = ()
) -> str:
    """Say which call of a site failed, and with which arguments, if they are small."""
    avals, _ = lowered.host_avals()
    values = itertools.chain(arguments, itertools.repeat(None))
    names = itertools.chain(lowered.operand_names, itertools.repeat(""))
    operands = [
        _argument(aval, value)
        for aval, value, name in zip(avals, values, names, strict=False)
        if not isinstance(name, AddedName)
    ]
    called_with = ", ".join(operands) or "no arguments"
    places = [f"in {call}"]
    if element is not None:
        places.append(f"in batch element {element}")
    if lowered.shard is not None:
        device = f" ({lowered.device})" if lowered.device else ""
        places.append(f"on shard {lowered.shard}{device}")
    return f"{', '.join(places)}, called with {called_with}{_of_a_batch(lowered)}"


def _argument(aval: Aval, value: Any) -> str:
    """Return ``float32[] = nan``; without the value of a large array, or of one of JAX.

    An argument that was made writable may have been overwritten.
    """
    known = isinstance(value, np.ndarray | np.generic) and value.shape == aval.shape
    kept = known and not value.flags.writeable
    words = value_words(value) if kept else ""
    return f"{aval} = {words}" if words else str(aval)


def _bound(site: Site, *, named: bool) -> str:
    """Say where the bind is, and the line that led to it, if that is in another function.

    Args:
        site: the site of the bind.
        named: whether cells are named. They are not in JAX's message, which a notebook may print:
            it is the same in every run.
    """
    caller = next((frame for frame in site.callers if not frame.library), None)
    lines = [at for at in (site, caller) if at is not None]
    places = [f"{_cell(at)}{at.where}" if named else at.where for at in lines]
    return (
        f"raised by the {site.flavor} callback {site.function}, bound at "
        f"{', called from '.join(places)}, "
    )


def _cell(at: Site | Frame) -> str:
    number = cell_number(at)
    return f"cell In[{number}], " if number else ""  # as in the lines of the traceback around it


def _is_read_only_error(message: Any) -> bool:
    return isinstance(message, str) and message.endswith("is read-only")  # NumPy's, and Cython's


def _of_a_batch(lowered: LoweredSite) -> str:
    levels = [level for level in lowered.levels if not level.looped]
    if not levels or levels[0].vmap_method == WHOLE_BATCH:
        return ""
    # A mask that no vmap maps over, as that of a branch, needs all elements or none.
    is_gathered = lowered.calls_each_time is None and any(x.batched[-1] for x in levels)
    needed = ", of which it got the needed elements" * is_gathered
    each = "'sequential' calls each batch element alone"
    return f" for a batch{needed} (vmap_method={levels[0].vmap_method!r}; {each})"


def _kept(error: BaseException, note: str, site: Site, others_may_wait: bool) -> HostCallError:
    kept = keep(error, note)
    _causes.expect(kept, site, others_may_wait=others_may_wait)
    raised = HostCallError(kept.text)
    raised.number = kept.number
    return raised


def failed_on_another_device(number: int, process: int | None, site: Site) -> HostCallError:
    """Build the error raised on the other devices of a program.

    Args:
        number: the number of the error, which each process counts separately.
        process: the process in which the host function failed; None for this one.
        site: the site of the call.
    """
    if process is None:
        kept = error_by_number(number)
        if kept is None:
            return HostCallError("a host function failed; its error is no longer available")
        return HostCallError(kept.text)
    error = HostCallError(f"{site.function} failed in process {process}; see the error there")
    note = f"of the {site.flavor} callback {site.function}, bound at {site.where}"
    return _kept(error, note, site, others_may_wait=False)
