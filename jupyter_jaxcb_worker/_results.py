"""What host functions result, on its way back."""

from __future__ import annotations

import io
import itertools
import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

_NUMPY_NUMBERS = {np.dtype(code).type for code in np.typecodes["AllInteger"] + "?efdgFDG"}
_NUMBERS = {*_NUMPY_NUMBERS, bool, int, float, complex}


class Checked(NamedTuple):
    """An result that has been looked at where it was made."""

    arrays: tuple[np.ndarray, ...]


def number_of(result: Any) -> Any:
    """`result`, if it is a number, which stays as it is; else None, also for None itself.

    One in an array of no dimension is taken out of it.
    """
    kind = type(result)
    if kind is np.ndarray:
        number = result[()]  # of more dimensions, a view
        own = type(number)
        return number if own in _NUMPY_NUMBERS and own is result.dtype.type else None
    return result if kind in _NUMBERS else None


def kept(
    keep: Callable[[Any], Any], count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """The results of `count` calls as `keep` makes them, and what the next one raised."""
    results: list[Any] = []
    try:
        results.extend(map(keep, calls))
        check_ended(len(results), count)
    except BaseException as error:
        return results, error
    return results, None


def kept_numbers(
    dtype: np.dtype, count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """As `kept`, faster where each results with a number of `dtype`: the array of them."""
    buffer, number, ndarray, shape = io.BytesIO(), dtype.type, np.ndarray, ()
    write: Callable[[Any], int] = buffer.write
    first: list[Any] = []  # that is none, if one is
    error: BaseException | None = None
    try:
        for result in calls:
            kind = type(result)
            if kind is number or (
                kind is ndarray and result.dtype is dtype and result.shape == shape
            ):
                write(result)
            else:
                first.append(result)
                break
    except BaseException as raised:
        error = raised
    numbers = np.frombuffer(buffer.getbuffer(), dtype)
    if first:
        others, error = kept(snapshot, count - len(numbers), itertools.chain(first, calls))
        return [*numbers, *others], error
    if error is None and len(numbers) < count:
        error = stopped()
    return numbers, error


def stopped() -> RuntimeError:
    """What to raise where a loop over calls has ended too early."""
    return RuntimeError(
        "it raised StopIteration, which ends the loop over the elements as if there were no more. "
        "Raise another exception, or give next() a default."
    )


def check_ended(done: int, count: int) -> None:
    """Raises where a loop over `count` calls has ended after `done`."""
    if done < count:
        raise stopped()


def snapshot(result: Any) -> Any:
    """`result`, not to be changed by who made it, and fit to travel."""
    number = number_of(result)
    if number is not None or result is None:
        return number
    if type(result) is np.ndarray and result.dtype.kind != "O":
        return result.copy()
    if hasattr(result, "__array__") and not isinstance(result, np.ndarray):
        return np.array(result)
    try:
        return _Pickled(dumps(result))
    except Exception as error:
        raise TypeError(
            f"its result, {type(result).__name__}, cannot be sent back ({error}). Return "
            "numbers or arrays."
        ) from None


class _Pickled(NamedTuple):
    data: bytes


class _Stack(NamedTuple):
    """Answers of one kind, as one array."""

    array: np.ndarray
    numbers: bool


def stacked(results: Sequence[Any]) -> Any:
    """`results` as one array where they are of one kind, else as they are."""
    if isinstance(results, np.ndarray):
        return _Stack(results, True)
    kinds = set(map(type, results))
    (kind,) = kinds if len(kinds) == 1 else (None,)
    if kind in _NUMPY_NUMBERS:
        return _Stack(np.array(results), True)
    if kind is np.ndarray and len({(one.dtype, one.shape) for one in results}) == 1:
        array = np.empty((len(results), *results[0].shape), results[0].dtype)
        for place, one in enumerate(results):
            array[place] = one
        return _Stack(array, False)
    return list(results)


def unstacked(results: Any) -> Any:
    """What `stacked` was given; numbers of one kind stay the array of them."""
    if not isinstance(results, _Stack):
        return results
    array = results.array
    return array if results.numbers else [array[n, ...] for n in range(len(array))]


def unpickled(results: Sequence[Any], numbers: np.dtype | None) -> Iterator[Any]:
    """Answers as the host function gave them; numbers that need no look all at once.

    Args:
        results: of some batch elements, from one worker.
        numbers: what each of them is declared to be; None: no number.
    """
    if numbers is not None and isinstance(results, np.ndarray) and results.dtype == numbers:
        return iter((Checked((results,)),))
    return map(_opened, results)


def _opened(result: Any) -> Any:
    return pickle.loads(result.data) if type(result) is _Pickled else result


def dumps(value: Any) -> bytes:
    try:
        return pickle.dumps(value, 5)
    except Exception:
        return dumps_by_value(value)


def dumps_by_value(value: Any) -> bytes:
    """With the classes that cannot be imported, of a cell say."""
    import cloudpickle

    return cloudpickle.dumps(value, 5)
