"""Copy the results of host functions, and pickle results and exceptions to send them back."""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_NUMPY_NUMBERS = {np.dtype(code).type for code in np.typecodes["AllInteger"] + "?efdgFDG"}
_NUMBERS = {*_NUMPY_NUMBERS, bool, int, float, complex}
_FOLDER = os.path.dirname(os.path.abspath(__file__))


class ElementError(RuntimeError):
    """Replaces an exception of another process that cannot be pickled."""


class Pickled(NamedTuple):
    """A result that is no array, as it was when the host function returned it."""

    data: bytes


def check_ended(done: int, count: int) -> None:
    """Raise if a loop over `count` calls ended after `done`."""
    if done < count:
        raise RuntimeError(
            "the host function raised StopIteration, which would end the loop that calls it. Raise "
            "another exception, or give next() a default."
        )


def number_of(result: Any) -> Any:
    """Return `result` if it is a number, which is immutable; else None.

    A number in an array of shape () is taken out of the array.
    """
    kind = type(result)
    if kind is np.ndarray:
        number = result[()]  # a view if the array has dimensions
        own = type(number)
        return number if own in _NUMPY_NUMBERS and own is result.dtype.type else None
    return result if kind in _NUMBERS else None


def snapshot(result: Any) -> Any:
    """Return a copy of `result` that can be sent, and that the host function cannot change."""
    number = number_of(result)
    if number is not None or result is None:
        return number
    if type(result) is np.ndarray and result.dtype.kind != "O":
        return result.copy()
    try:
        return Pickled(dumps(result))
    except Exception as error:
        raise TypeError(
            f"its result ({type(result).__name__}) cannot be sent back ({error}). Return "
            "numbers or arrays."
        ) from None


def restored(result: Any) -> Any:
    """Return a result as the host function returned it; undo `snapshot`."""
    return pickle.loads(result.data) if type(result) is Pickled else result


def stacked(results: Sequence[Any]) -> Any:
    """Return `results` as one array if NumPy knows their type and they are alike, else as a list.

    One array is pickled faster than many.
    """
    alike = {
        (type(one), getattr(one, "dtype", None), getattr(one, "shape", None)) for one in results
    }
    if len(alike) == 1:
        ((_, dtype, _),) = alike
        if isinstance(dtype, np.dtype) and dtype.kind in "biufc":
            array = np.array(results)
            return array.dtype.str, array.shape, array.tobytes()
    return list(results)


def unstacked(results: Any) -> Any:
    """Undo `stacked`."""
    if not isinstance(results, tuple):
        return results
    dtype, shape, data = results
    array = np.frombuffer(data, dtype).reshape(shape)
    return array if array.ndim == 1 else list(array)


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
