"""Fill rows of the log for host calls that the calling thread has made, and record them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .._facts import ROW, LoweredSite
from ._log import pack_row
from ._recorder import Recorder


def record_call(
    recorder: Recorder,
    lowered: LoweredSite,
    version: int,
    start: int,
    end: int,
    error: str | None = None,
) -> int:
    """Record one host call without batch elements; return the number of its crossing."""
    number, crossing = recorder.numbers[lowered], recorder.crossing()
    try:
        thread = recorder.on_thread.number
    except AttributeError:
        thread = recorder.enlist_thread()
    code = 0 if error is None else recorder.error(error)
    waited = 0 if recorder.crossed_ns is None else start - recorder.crossed_ns
    row = pack_row(start, end, number, crossing, -1, thread, version, code, waited)
    recorder.called(row)
    return crossing


def record_elements(
    recorder: Recorder,
    lowered: LoweredSite,
    version: int,
    elements: np.ndarray,
    stamps: Sequence[int],
    failed: int | None = None,
    error: str = "",
) -> int:
    """Record all host calls of one crossing that looped over batch elements.

    Args:
        recorder: the recorder.
        lowered: the site.
        version: number of the host function's body that ran.
        elements: row-major batch element numbers in the order of the calls.
        stamps: the clock before the first call and after each call: one more than calls.
        failed: index of the call that failed, if one did.
        error: the error that it raised.

    Returns:
        The number of the crossing.
    """
    count = len(stamps) - 1
    crossing = recorder.crossing()
    if count == 0:  # no batch elements
        return crossing
    times = np.array(stamps, np.int64)
    rows = np.zeros(count, ROW)
    rows["start_ns"] = times[:-1]
    rows["end_ns"] = times[1:]
    rows["lowered"] = recorder.numbers[lowered]
    rows["crossing"] = crossing
    rows["element"] = elements[:count]
    rows["thread"] = recorder.enlist_thread()
    rows["version"] = version
    if recorder.crossed_ns is not None:
        rows["queued_ns"][0] = stamps[0] - recorder.crossed_ns
    if failed is not None and failed < count:  # an interrupt may hit between two calls
        rows["error"][failed] = recorder.error(error)
    recorder.called(rows.tobytes())
    return crossing
