"""Memory that XLA lends a host function for the length of one call."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# What `sys.getrefcount` says of an object that nothing but a list holds.
_ALONE = next(map(sys.getrefcount, [object()]))


class RetainedBufferWarning(UserWarning):
    """A buffer callback still holds an array after its call.

    The array is memory of XLA's, which writes other numbers there. The message names the callback
    and the argument; `numpy.ndarray.copy` is the way out.
    """


def borrow(buffers: Sequence[Any], inputs: int) -> list[np.ndarray]:
    """Arrays over the memory of `buffers`, the first `inputs` of them read-only; nothing copied."""
    arrays = [buffer.__array__() for buffer in buffers]
    for array in arrays[:inputs]:
        array.setflags(write=False)
    return arrays


def still_held(arrays: list[Any]) -> list[int]:
    """Which of `arrays`, held by that list alone, somebody else holds too, or a view of them."""
    return [n for n, count in enumerate(map(sys.getrefcount, arrays)) if count > _ALONE]


def reclaim(arrays: list[np.ndarray], names: Sequence[str], callback: str, code: Any) -> None:
    """Warns if one of `arrays` is still held after the call, and gives it memory of its own.

    Args:
        arrays: held by that list alone, if all is well.
        names: of the arrays, for the message.
        callback: which had them.
        code: of the host function, if it has some.

    Views of an array stay where they are: nothing finds them.
    """
    held = still_held(arrays)
    if not held:
        return
    for n in held:
        _own(arrays[n])
    which = " and ".join(names[n] for n in held)
    warnings.warn_explicit(
        f"the buffer callback {callback} still holds {which} after its call. Such an array is "
        "borrowed for one call: XLA writes other numbers there. Keep a copy of it, x.copy(): it was "
        "made one now, but parts taken of it before (x[1:]) turn to garbage.",
        RetainedBufferWarning,
        getattr(code, "co_filename", callback),
        getattr(code, "co_firstlineno", 1),
    )


def rescue(error: BaseException | None, arrays: Sequence[np.ndarray]) -> None:
    """Copies what the frames of `error` hold of `arrays`, for who looks at them later.

    A traceback keeps the frames of the failed call, and a debugger shows what is in them.
    """
    views = [view for view in _locals(error) if any(np.may_share_memory(view, x) for x in arrays)]
    for array in (*views, *arrays):
        _own(array)


def _own(array: np.ndarray) -> None:
    """Gives `array` its own copy of what it shows."""
    state: Any = (1, array.shape, array.dtype, False, array.tobytes())  # version, ..., order
    array.__setstate__(state)


def _locals(error: BaseException | None) -> Iterator[np.ndarray]:
    """The arrays among the local variables of a traceback's frames."""
    trace = None if error is None else error.__traceback__
    while trace is not None:
        for value in trace.tb_frame.f_locals.values():
            if isinstance(value, np.ndarray):
                yield value
        trace = trace.tb_next
