"""What host functions answer, on its way back."""

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
    """An answer that has been looked at where it was made."""

    arrays: tuple[np.ndarray, ...]


def number_of(answer: Any) -> Any:
    """`answer`, if it is a number, which stays as it is; else None, also for None itself.

    One in an array of no dimension is taken out of it.
    """
    kind = type(answer)
    if kind is np.ndarray:
        number = answer[()]  # of more dimensions, a view
        own = type(number)
        return number if own in _NUMPY_NUMBERS and own is answer.dtype.type else None
    return answer if kind in _NUMBERS else None


def kept(
    keep: Callable[[Any], Any], count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """The answers of `count` calls as `keep` makes them, and what the next one raised."""
    answers: list[Any] = []
    try:
        answers.extend(map(keep, calls))
        check_ended(len(answers), count)
    except BaseException as error:
        return answers, error
    return answers, None


def kept_numbers(
    dtype: np.dtype, count: int, calls: Iterator[Any]
) -> tuple[Any, BaseException | None]:
    """As `kept`, faster where each answers with a number of `dtype`: the array of them."""
    buffer, number, ndarray, shape = io.BytesIO(), dtype.type, np.ndarray, ()
    write: Callable[[Any], int] = buffer.write
    first: list[Any] = []  # that is none, if one is
    error: BaseException | None = None
    try:
        for answer in calls:
            kind = type(answer)
            if kind is number or (
                kind is ndarray and answer.dtype is dtype and answer.shape == shape
            ):
                write(answer)
            else:
                first.append(answer)
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


def snapshot(answer: Any) -> Any:
    """`answer`, not to be changed by who made it, and fit to travel."""
    number = number_of(answer)
    if number is not None or answer is None:
        return number
    if type(answer) is np.ndarray and answer.dtype.kind != "O":
        return answer.copy()
    if hasattr(answer, "__array__") and not isinstance(answer, np.ndarray):
        return np.array(answer)
    try:
        return _Pickled(dumps(answer))
    except Exception as error:
        raise TypeError(
            f"its answer, {type(answer).__name__}, cannot be sent back ({error}). Return "
            "numbers or arrays."
        ) from None


class _Pickled(NamedTuple):
    data: bytes


class _Stack(NamedTuple):
    """Answers of one kind, as one array."""

    array: np.ndarray
    numbers: bool


def stacked(answers: Sequence[Any]) -> Any:
    """`answers` as one array where they are of one kind, else as they are."""
    if isinstance(answers, np.ndarray):
        return _Stack(answers, True)
    kinds = set(map(type, answers))
    (kind,) = kinds if len(kinds) == 1 else (None,)
    if kind in _NUMPY_NUMBERS:
        return _Stack(np.array(answers), True)
    if kind is np.ndarray and len({(one.dtype, one.shape) for one in answers}) == 1:
        array = np.empty((len(answers), *answers[0].shape), answers[0].dtype)
        for place, one in enumerate(answers):
            array[place] = one
        return _Stack(array, False)
    return list(answers)


def unstacked(answers: Any) -> Any:
    """What `stacked` was given; numbers of one kind stay the array of them."""
    if not isinstance(answers, _Stack):
        return answers
    array = answers.array
    return array if answers.numbers else [array[n, ...] for n in range(len(array))]


def opened(answers: Sequence[Any], numbers: np.dtype | None) -> Iterator[Any]:
    """Answers as the host function gave them; numbers that need no look all at once.

    Args:
        answers: of some batch elements, from one worker.
        numbers: what each of them is declared to be; None: no number.
    """
    if numbers is not None and isinstance(answers, np.ndarray) and answers.dtype == numbers:
        return iter((Checked((answers,)),))
    return map(_opened, answers)


def _opened(answer: Any) -> Any:
    return pickle.loads(answer.data) if type(answer) is _Pickled else answer


def dumps(value: Any) -> bytes:
    try:
        return pickle.dumps(value, 5)
    except Exception:
        return dumps_by_value(value)


def dumps_by_value(value: Any) -> bytes:
    """With the classes that cannot be imported, of a cell say."""
    import cloudpickle

    return cloudpickle.dumps(value, 5)
