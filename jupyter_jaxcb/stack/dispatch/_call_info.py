"""Tell `call_info` the host calls of this process, from the frames of their crossings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import FrameType

from jupyter_jaxcb_worker import CallFacts, CallInfo, Numbers, reads_call_in

from ...recording import LoweredSite
from ._frames import LOOPED, READERS, RECORDED_ELEMENTS, SELECTING, SINGLE


def facts_of(lowered: LoweredSite, calls: int, numbers: Numbers | None = None) -> CallFacts:
    """Return the facts of the calls of a crossing.

    Args:
        lowered: the site.
        calls: the number of calls of its host function before the crossing.
        numbers: the batch element of each call, or those of the only call; None: all of them.
    """
    site, levels = lowered.site, lowered.levels[::-1]
    sizes = tuple(level.size for level in levels)
    first = CallInfo(
        callback=site.function,
        flavor=site.flavor,
        file=site.file,
        line=site.line,
        program=None if lowered.program is None else lowered.program.name,
        call=calls + 1,
        shard=lowered.shard,
        device=lowered.device,
        batch=sizes,
        axis_names=tuple(level.axis_name or None for level in levels),
        _numbers=range(math.prod(sizes)) if numbers is None else numbers,
    )
    return CallFacts(first, each=lowered.elements is not None)


@reads_call_in(SINGLE, LOOPED)
def _running_call(frame: FrameType, inside: Sequence[FrameType]) -> CallInfo | None:
    """Return the call that the crossing in `frame` is making."""
    names = frame.f_locals
    stamps = [one.f_locals["stamps"] for one in inside if one.f_code is RECORDED_ELEMENTS]
    seen = READERS[frame.f_code](names, stamps[-1] if stamps else None)
    if seen is None:
        return None
    element, _, number = seen
    numbers = [element] if frame.f_code is LOOPED else _selected(frame.f_back)
    return facts_of(names["lowered"], number - 1, numbers).info(0)


def _selected(frame: FrameType | None) -> Numbers | None:
    """Return the batch elements of the only call of a crossing; None: all of them.

    Args:
        frame: the caller of the crossing.
    """
    while frame is not None and frame.f_code not in READERS:  # that of another crossing
        if frame.f_code in SELECTING:
            return frame.f_locals["chosen"].numbers
        frame = frame.f_back
    return None
