"""Limit the queue: what is done when it is full, and what users may change and drop."""

from __future__ import annotations

import numbers
from typing import Any

from ...stack import options
from ...stack.call import did_you_mean
from ._queue import queue

ON_FULL = ("wait", "drop")  # what to do if the queue is full


@options.check("on_full")
def _check_on_full(on_full: Any) -> Any:
    __tracebackhide__ = True
    if on_full not in ON_FULL:
        raise ValueError(
            f"unknown on_full {on_full!r}{did_you_mean(str(on_full), ON_FULL)} "
            "Pass on_full='wait' or on_full='drop'."
        )
    return on_full


options.refuse_result(
    "queued", "the program needs it at once", "Declare result=None, or drop queued=True."
)


def set_queue_limit(nbytes: int) -> int:
    """Set how many bytes the queue of queued callbacks may hold; 256 MB at first.

    Each crossing counts with its arrays and another kilobyte. If there is no room for one more, the
    program waits, or drops its calls if the callback is registered with ``on_full="drop"``. One
    crossing always has room, however large it is.

    Args:
        nbytes: the limit in bytes, at least 0.

    Returns:
        The previous limit in bytes.

    Raises:
        ValueError: if `nbytes` is negative or not an integer.

    >>> import jupyter_jaxcb as jaxcb
    >>> before = jaxcb.set_queue_limit(64 << 20)
    >>> jaxcb.set_queue_limit(before) == 64 << 20
    True
    """
    if not isinstance(nbytes, numbers.Integral) or isinstance(nbytes, bool) or nbytes < 0:
        raise ValueError(f"{nbytes!r} is not a number of bytes. Try set_queue_limit(64 << 20).")
    return queue.set_limit(int(nbytes))


def drop_queued() -> int:
    """Drop the queued host calls that have not begun, and end the one that is running.

    The running call gets an exception at its next Python instruction; C code runs until it returns.
    A recording counts the calls that are dropped.

    Returns:
        The number of calls that waited. Those of the batch that is running are not in it; they are
        dropped too, and counted in a recording.

    >>> import jupyter_jaxcb as jaxcb
    >>> jaxcb.drop_queued()
    0
    """
    return queue.drop().total()
