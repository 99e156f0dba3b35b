"""Copy the results of host functions and send them back."""

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
    """A result that was checked where the host function ran."""

    arrays: tuple[np.ndarray, ...]


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


def collect_results(
    keep: Callable[[Any], Any], count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """Return the results of up to `count` calls, copied by `keep`, and what the next one raised."""
    results: list[Any] = []
    try:
        results.extend(map(keep, calls))
        check_ended(len(results), count)
    except BaseException as error:
        return results, error
    return results, None


def collect_numbers(
    dtype: np.dtype, count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """As `collect_results`, but faster for numbers of `dtype`, which come as one array."""
    buffer, number, ndarray, shape = io.BytesIO(), dtype.type, np.ndarray, ()
    write: Callable[[Any], int] = buffer.write
    first: list[Any] = []  # the first result that is not such a number, if any
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
    numbers = np.frombuffer(buffer.getvalue(), dtype)  # not copied
    if first:
        others, error = collect_results(
            snapshot, count - len(numbers), itertools.chain(first, calls)
        )
        return [*numbers, *others], error
    if error is None and len(numbers) < count:
        error = stopped()
    return numbers, error


def stopped() -> RuntimeError:
    """Return the error to raise instead of StopIteration, which ends the loop over calls."""
    return RuntimeError(
        "the host function raised StopIteration, which would end the loop that calls it. Raise "
        "another exception, or give next() a default."
    )


def check_ended(done: int, count: int) -> None:
    """Raise if a loop over `count` calls ended after `done`."""
    if done < count:
        raise stopped()


def snapshot(result: Any) -> Any:
    """Return a copy of `result` that can be sent, and that the host function cannot change."""
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
            f"its result ({type(result).__name__}) cannot be sent back ({error}). Return "
            "numbers or arrays."
        ) from None


class _Pickled(NamedTuple):
    data: bytes


class _Stack(NamedTuple):
    """Results of one type, as one array."""

    array: np.ndarray
    numbers: bool


def stacked(results: Sequence[Any]) -> Any:
    """Return `results` as one array if they have one type, else as a list."""
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
    """Undo `stacked`, but leave numbers of one type as an array."""
    if not isinstance(results, _Stack):
        return results
    array = results.array
    return array if results.numbers else [array[n, ...] for n in range(len(array))]


def unpickled(results: Sequence[Any], numbers: np.dtype | None) -> Iterator[Any]:
    """Yield the results as the host function returned them.

    Numbers that need no further check are yielded as a single `Checked` array.

    Args:
        results: the results of a chunk.
        numbers: the declared dtype, if each result is a number; else None.
    """
    if numbers is not None and isinstance(results, np.ndarray) and results.dtype == numbers:
        return iter((Checked((results,)),))
    return map(_unpickled, results)


def _unpickled(result: Any) -> Any:
    return pickle.loads(result.data) if type(result) is _Pickled else result


def dumps(value: Any) -> bytes:
    try:
        return pickle.dumps(value, 5)
    except Exception:
        return dumps_by_value(value)


def dumps_by_value(value: Any) -> bytes:
    """Pickle `value` by value, including classes that cannot be imported (such as a cell's)."""
    import cloudpickle

    return cloudpickle.dumps(value, 5)
