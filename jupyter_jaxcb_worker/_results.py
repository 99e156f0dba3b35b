"""Copy the results of host functions, and pickle results and exceptions to send them back."""

from __future__ import annotations

import os
import pickle
import traceback
from typing import Any

import numpy as np

_NUMBERS = np.typecodes["AllInteger"] + "?efdgFDG"
_IMMUTABLE = {bool, int, float, complex, type(None), *(np.dtype(code).type for code in _NUMBERS)}
_FOLDER = os.path.dirname(os.path.abspath(__file__))


class ElementError(RuntimeError):
    """Replaces an exception of another process that cannot be pickled."""


def check_ended(done: int, count: int) -> None:
    """Raise if a loop over `count` calls ended after `done`."""
    if done < count:
        raise RuntimeError(
            "the host function raised StopIteration, which would end the loop that calls it. Raise "
            "another exception, or give next() a default."
        )


def snapshot(result: Any) -> Any:
    """Return a copy of `result`: a number, an array, or in bytes what is neither."""
    if type(result) in _IMMUTABLE:
        return result
    if type(result) is np.ndarray and result.dtype.kind != "O":
        return result.copy()
    try:
        return dumps(result)
    except Exception as error:
        raise TypeError(
            f"its result ({type(result).__name__}) cannot be sent back ({error}). Return "
            "numbers or arrays."
        ) from None


def restored(result: Any) -> Any:
    """Return a result as the host function returned it; undo `snapshot`."""
    return pickle.loads(result) if type(result) is bytes else result


def dumps(value: Any) -> bytes:
    """Pickle `value`, including functions and classes that cannot be imported, as those of a cell.

    Protocol 5 preserves that an array is read-only.
    """
    import cloudpickle

    return cloudpickle.dumps(value, 5)


def pickled_error(error: BaseException | None) -> tuple[bytes, str]:
    """Return `error` as bytes, if need be an `ElementError`, and its formatted traceback."""
    if error is None:
        return b"", ""
    at = error.__traceback__
    while at is not None and at.tb_frame.f_code.co_filename.startswith(_FOLDER):
        at = at.tb_next
    trace = "".join(traceback.format_exception(type(error), error, at)).rstrip() if at else ""
    try:
        data = dumps(error)
        pickle.loads(data)
        return data, trace
    except Exception:
        text = "".join(traceback.format_exception_only(error)).strip()
        return pickle.dumps(ElementError(text)), trace


def unpickled_error(data: bytes, trace: str) -> BaseException | None:
    """Undo `pickled_error`, as far as the class of the exception exists in this process."""
    if not data:
        return None
    try:
        return pickle.loads(data)
    except Exception as wrong:
        return ElementError(f"{(trace or 'an exception').splitlines()[-1]} ({wrong})")
