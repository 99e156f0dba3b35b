"""Values for the elements of a batch, made up from the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from ...stack.results import ResultError, kind_of
from ._subject import Subject, one_by_one


class Elements:
    """Made-up values for each operand, and the results of single calls with them.

    Attributes:
        subject: the callback with its given arguments.
        count: the number of batch elements.
        variants: for each operand, one value per element, accepted by the host function. The first
            one is the given value.
        misfit: a call with made-up values whose result is not as declared; empty if there is none.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, self.misfit = subject, ""
        self.count = 2 if subject.is_large else 3
        self.variants = [[array] * self.count for array in subject.operands]
        self._results: dict[tuple[int, ...], list[np.ndarray]] = {}
        for group in one_by_one(range(len(subject.operands))):
            for element in range(1, self.count):
                changed = [
                    _changed(x, element) if n in group else x
                    for n, x in enumerate(subject.operands)
                ]
                if self.takes(changed):
                    for n in group:
                        self.variants[n][element] = changed[n]

    def takes(self, operands: Sequence[np.ndarray]) -> bool:
        """Return whether the host function returns the declared result for made-up values."""
        try:
            self.subject.run(operands)
        except ResultError as error:
            self.misfit = self.misfit or f"called with {self.shown(operands)}, {error}"
            return False
        except Exception:  # the values may be outside its domain
            return False
        return True

    def shown(self, operands: Sequence[np.ndarray]) -> str:
        """Return ``args[0] = 0.5``: the first few values that differ from the given ones."""
        given = zip(self.subject.names, operands, self.subject.operands, strict=True)
        texts = [
            f"{name} = {np.array2string(x, threshold=8, edgeitems=2, separator=', ')}"
            for name, x, y in given
            if not np.array_equal(x, y)
        ]
        return " and ".join(" ".join(text.split()) for text in texts[:3])

    def result(self, choices: Sequence[int]) -> list[np.ndarray]:
        """Return the result of a single call with one variant of each operand."""
        key = tuple(choices)
        if key not in self._results:
            self._results[key] = self.subject.run(
                [values[n] for values, n in zip(self.variants, key, strict=True)]
            )
        return self._results[key]


def _changed(array: np.ndarray, element: int) -> np.ndarray:
    """Return a value close by or closer to zero, so that most functions accept it."""
    kind = kind_of(array.dtype)
    if kind == "b":
        return ~array if element % 2 else array
    if kind == "i":
        whole = array if array.dtype.kind in "iu" else array.astype(np.int64)  # such as int4
        step = whole.dtype.type(element)
        is_high = whole > int(ml_dtypes.iinfo(array.dtype).max) - element
        return np.asarray(np.where(is_high, whole - step, whole + step).astype(array.dtype))
    with np.errstate(all="ignore"):  # signaling NaN
        if not array.any():  # all are 0
            return np.full_like(array, element / 4)
        return np.asarray((array * array.dtype.type(1 - element / 4)).astype(array.dtype))
