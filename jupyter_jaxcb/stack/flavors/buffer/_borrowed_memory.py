"""Memory of XLA's that a host function borrows for one call."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

# `sys.getrefcount` of an object that only a list refers to.
_ALONE = next(map(sys.getrefcount, [object()]))


class RetainedBufferWarning(UserWarning):
    """A buffer callback kept one of its arrays after it returned.

    The array borrows memory that XLA reuses for other values. The message names the callback and
    the argument; keep a copy instead (`numpy.ndarray.copy`).
    """


def borrow(buffers: Sequence[Any], inputs: int) -> list[np.ndarray]:
    """Return arrays that share the memory of `buffers`; the first `inputs` are read-only."""
    arrays = [buffer.__array__() for buffer in buffers]
    for array in arrays[:inputs]:
        array.setflags(write=False)
    return arrays


def still_held(arrays: list[Any]) -> list[int]:
    """Return the indices of `arrays` that something besides that list (or a view) refers to."""
    return [n for n, count in enumerate(map(sys.getrefcount, arrays)) if count > _ALONE]


def reclaim(arrays: list[np.ndarray], names: Sequence[str], callback: str, code: Any) -> None:
    """Warn about `arrays` that the host function kept, and copy their data out of XLA's memory.

    Existing views of a kept array cannot be found, so they still point into XLA's memory.

    Args:
        arrays: the arrays of the call, which only this list should refer to.
        names: their names in the message.
        callback: the name of the host function.
        code: its code object, or None.
    """
    held = still_held(arrays)
    if not held:
        return
    for n in held:
        _own(arrays[n])
    which = " and ".join(names[n] for n in held)
    warnings.warn_explicit(
        f"buffer callback {callback} kept {which} after it returned, but XLA reuses that memory. "
        "Keep a copy instead: x.copy(). The array was copied this time; existing views of it "
        "(x[1:]) are invalid.",
        RetainedBufferWarning,
        getattr(code, "co_filename", callback),
        getattr(code, "co_firstlineno", 1),
    )


def rescue(error: BaseException | None, arrays: Sequence[np.ndarray]) -> None:
    """Copy `arrays`, and the views of them in the frames of `error`, out of XLA's memory.

    A traceback keeps the frames of the failed call alive, and a debugger shows their variables.
    """
    views = [view for view in _locals(error) if any(np.may_share_memory(view, x) for x in arrays)]
    for array in (*views, *arrays):
        _own(array)


def _own(array: np.ndarray) -> None:
    """Replace the memory of `array` by a copy, in place."""
    state: Any = (1, array.shape, array.dtype, False, array.tobytes())  # version, ..., order
    array.__setstate__(state)


def _locals(error: BaseException | None) -> Iterator[np.ndarray]:
    """Yield the arrays among the local variables of a traceback's frames."""
    trace = None if error is None else error.__traceback__
    while trace is not None:
        for value in trace.tb_frame.f_locals.values():
            if isinstance(value, np.ndarray):
                yield value
        trace = trace.tb_next
