"""Compare the results for a batch with those of single calls for its elements."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ...recording import VMAP_METHODS, AxisKind, Finding
from ...stack.call import option
from ...stack.results import ResultError, kind_of
from ._compare import difference
from ._subject import Subject, one_by_one, one_line

KIND = "vmap contract"
_ELEMENTS = 3
BATCHED = [name for name, method in VMAP_METHODS.items() if not method.looped]
_Level = tuple[int, list[bool]]  # size of one vmap, and which operands it maps


class ElementSamples:
    """Made-up values for the elements of a batch, and the results of single calls with them.

    Attributes:
        subject: the callback with its given arguments.
        count: number of batch elements.
        variants: for each operand, one value per element, accepted by the host function.
        misfit: a call with made-up values whose result is not as declared; empty if there is none.
    """

    def __init__(self, subject: Subject) -> None:
        self.subject, self.misfit = subject, ""
        self.count = 2 if subject.is_large else _ELEMENTS
        self.variants = [[array] * self.count for array in subject.operands]
        self._results: dict[tuple[int, ...], list[np.ndarray]] = {}
        for group in one_by_one(range(len(subject.operands))):
            for element in range(1, self.count):
                changed = list(subject.operands)
                for n in group:
                    changed[n] = np.asarray(_changed(changed[n], element))
                if self.takes(changed):
                    for n in group:
                        self.variants[n][element] = changed[n]

    def takes(self, operands: Sequence[np.ndarray]) -> bool:
        """Whether it returns the declared result for made-up values."""
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
        changed = [(name, x) for name, x, y in given if not np.array_equal(x, y)]
        texts = [
            f"{name} = {np.array2string(x, threshold=8, edgeitems=2, separator=', ')}"
            for name, x in changed[:3]
        ]
        return " and ".join(" ".join(text.split()) for text in texts)

    def result(self, choices: tuple[int, ...]) -> list[np.ndarray]:
        """Return the result of a single call with one variant of each operand."""
        if choices not in self._results:
            operands = [values[i] for values, i in zip(self.variants, choices, strict=True)]
            self._results[choices] = self.subject.run(operands)
        return self._results[choices]


def _changed(array: np.ndarray, element: int) -> np.ndarray:
    """Return a similar value, close by or closer to zero, so that most functions accept it."""
    kind = kind_of(array.dtype)
    if kind == "b":
        return ~array if element % 2 else array
    if kind == "i":
        wide = array if array.dtype.kind in "iu" else array.astype(np.int64)  # such as int4
        step = wide.dtype.type(element)
        is_high = wide > int(ml_dtypes.iinfo(array.dtype).max) - element
        return np.where(is_high, wide - step, wide + step).astype(array.dtype)
    with np.errstate(all="ignore"):  # signaling NaN
        if not array.any():  # all are 0
            return np.full_like(array, element / 4)
        return (array * array.dtype.type(1 - element / 4)).astype(array.dtype)


def vmap_findings(elements: ElementSamples, method: str) -> Iterator[Finding]:
    """Yield a finding if a batch under `method` gives other results than single calls."""
    for levels in _patterns(elements, method):
        what = _broken(elements, method, levels)
        if what:
            right = [other for other in BATCHED if other != method]
            right = [other for other in right if matches_single_calls(elements, other)]
            alone = option(elements.subject.callback.host, "vmap_method", "sequential")
            others = f", or {' or '.join(map(repr, right))}" if right else ""
            yield Finding(
                KIND,
                what,
                f"Register it with {alone}{others}, or make it accept a leading batch axis in each "
                "argument.",
            )
            return


def matches_single_calls(elements: ElementSamples, method: str) -> bool:
    """Whether `method` gives the results of single calls, in every pattern that is tried."""
    return not any(_broken(elements, method, levels) for levels in _patterns(elements, method))


def takes_any_batch(function: Any) -> bool:
    """Whether it is a ufunc, which accepts arrays of any shape.

    Any other function that was not registered for batches may do anything with one: loop forever,
    or crash the process in C code.
    """
    while isinstance(function, functools.partial):
        function = function.func
    return isinstance(function, np.ufunc)


def _patterns(elements: ElementSamples, method: str) -> list[list[_Level]]:
    """Return the nestings of vmaps to try, innermost first: all mapped, each alone, two nested."""
    unbatched, count = elements.subject.unbatched, elements.count
    mapped = [n for n, is_unbatched in enumerate(unbatched) if not is_unbatched]
    if not mapped:
        return []
    together = [n in mapped for n in range(len(unbatched))]
    every: list[list[_Level]] = [[(count, together)]]
    if elements.subject.is_large:
        return every
    if len(mapped) > 1:
        alone = [[n in group for n in range(len(unbatched))] for group in one_by_one(mapped)]
        every += [[(count, mask)] for mask in alone]
        if not VMAP_METHODS[method].hides_axes:
            every.append([(count, alone[0]), (2, alone[1])])
    return [*every, [(count, together), (2, together)]]


def _broken(elements: ElementSamples, method: str, levels: Sequence[_Level]) -> str:
    """Describe what is wrong with the result for one batch; empty if nothing is."""
    subject = elements.subject
    batch = [_batched(elements, n, levels, method) for n in range(len(elements.variants))]
    axes = tuple(size for size, _ in reversed(levels))
    shapes = ", ".join(str(array.shape) for array in batch)
    case = f"under vmap_method={method!r}, called with shapes {shapes} for a batch of {axes},"
    operands = range(len(batch))
    try:
        alone = {
            place: elements.result(
                tuple(_choice(n, levels, place, elements.count) for n in operands)
            )
            for place in np.ndindex(axes)
        }
    except Exception:  # values made up for one operand may not fit those of another
        return ""
    try:
        results = subject.run(batch, axes=axes, fresh=True)
    except Exception as error:
        return f"{case} it fails: {one_line(error)}"
    for place, expected in alone.items():
        found = [result[place] for result in results]
        wrong = difference(list(map(np.asarray, found)), expected, subject.paths)
        if wrong:
            element = place[0] if len(place) == 1 else place
            return (
                f"{case} batch element {element} is {wrong.found}{wrong.at}; called alone it "
                f"returns {wrong.expected}"
            )
    return ""


def _choice(n: int, levels: Sequence[_Level], place: Sequence[int], count: int) -> int:
    """Return the variant of operand `n` in the batch element at `place`, outermost axis first."""
    inner_first = list(reversed(place))
    mapped = [i for i, (_, mask) in zip(inner_first, levels, strict=True) if mask[n]]
    return sum(mapped) % count


def _batched(elements: ElementSamples, n: int, levels: Sequence[_Level], method: str) -> np.ndarray:
    """Return operand `n` as the host function gets it, see `VMAP_METHODS`."""
    values = elements.variants[n]
    outermost_first = list(reversed(levels))
    axes = [size if mask[n] else 1 for size, mask in outermost_first]
    places = itertools.product(*map(range, axes))
    stacked = np.stack([values[_choice(n, levels, place, elements.count)] for place in places])
    whole = stacked.reshape((*axes, *values[0].shape))
    unmapped = tuple(i for i, (_, mask) in enumerate(outermost_first) if not mask[n])
    kind = VMAP_METHODS[method].unbatched
    if kind is AxisKind.UNBATCHED:
        return whole.squeeze(unmapped)
    if kind is AxisKind.TILED:
        full: Any = tuple(size for size, _ in outermost_first)
        return np.broadcast_to(whole, (*full, *values[0].shape)).copy()
    return whole
