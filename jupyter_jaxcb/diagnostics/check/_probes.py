"""Reduce results to a few numbers: some elements, and a weighted sum of all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np


class _Probe(NamedTuple):
    """The numbers taken from one result.

    Attributes:
        places: flat indices of the elements that are taken.
        weights: weights of all elements, for a sum; None if `places` are all elements.
    """

    places: np.ndarray
    weights: np.ndarray | None


class Probes:
    """Numbers that depend linearly on results.

    Called with results, it returns the elements (for complex results real, then imaginary parts)
    and the real part of the weighted sum.

    Attributes:
        labels: where each number is in the results, ``" at [0, 1]"``.
    """

    def __init__(self, avals: Sequence[Any], most: int) -> None:
        generator = np.random.default_rng(1)
        self._avals = avals
        self._probes = [_probe(aval, most, generator) for aval in avals]
        self._narrow = [True] * len(avals)
        self.labels = [
            label
            for aval, probe in zip(avals, self._probes, strict=True)
            for label in _labels(aval, probe)
        ]

    def __call__(self, results: Sequence[np.ndarray]) -> np.ndarray:
        numbers = []
        for y, probe in zip(results, self._probes, strict=True):
            elements = y.reshape(-1)[probe.places]
            numbers += [np.real(elements), np.imag(elements)] if _is_complex(y) else [elements]
            if probe.weights is not None:
                numbers.append(np.array([np.real(y.reshape(-1) @ probe.weights)]))
        return np.concatenate([*numbers, np.empty(0)]).astype(np.float64)

    def sizes(self, results: Sequence[np.ndarray]) -> np.ndarray:
        """Return the size of the result that each number comes from."""
        numbers = []
        for y, probe in zip(results, self._probes, strict=True):
            elements = np.abs(y.reshape(-1)[probe.places])
            numbers += [elements] * (2 if _is_complex(y) else 1)
            if probe.weights is not None:
                numbers.append(np.array([np.linalg.norm(y)]))
        return np.concatenate([*numbers, np.empty(0)])

    def narrow(self, results: Sequence[np.ndarray]) -> None:
        """Note whether `results`, given in float64, were computed in a lower precision."""
        for k, (y, probe) in enumerate(zip(results, self._probes, strict=True)):
            elements = y.reshape(-1)[probe.places]
            own = np.dtype(self._avals[k].dtype)
            less = np.dtype(np.complex64 if own.kind == "c" else np.float32)
            less = own if own.itemsize < less.itemsize else less
            with np.errstate(all="ignore"):
                same = np.array_equal(elements.astype(less).astype(y.dtype), elements, True)
            self._narrow[k] &= same

    def eps(self) -> np.ndarray:
        """Return eps of the precision in which each number seems to have been computed."""
        values = []
        for y, probe, is_narrow in zip(self._avals, self._probes, self._narrow, strict=True):
            own = np.dtype(y.dtype)
            narrow = max(float(ml_dtypes.finfo(own).eps), float(np.finfo(np.float32).eps))
            eps = narrow if is_narrow else float(np.finfo(np.float64).eps)
            values += [eps] * len(_labels(y, probe))
        return np.array(values)

    def cotangents(self) -> Iterator[list[np.ndarray]]:
        """Yield, for each number, the cotangents for which a reverse-mode rule gives its gradient.

        JAX pairs without conjugation: the real part of ``-1j * y`` is the imaginary part of y.
        """
        for k, (aval, probe) in enumerate(zip(self._avals, self._probes, strict=True)):
            for unit in (1, -1j) if _is_complex(aval) else (1,):
                for place in probe.places:
                    cotangents = [np.zeros(one.shape, one.dtype) for one in self._avals]
                    cotangents[k].reshape(-1)[place] = unit
                    yield cotangents
            if probe.weights is not None:
                cotangents = [np.zeros(one.shape, one.dtype) for one in self._avals]
                cotangents[k][...] = probe.weights.reshape(aval.shape)
                yield cotangents


def _is_complex(y: Any) -> bool:
    return np.dtype(y.dtype).kind == "c"


def _probe(aval: Any, most: int, generator: np.random.Generator) -> _Probe:
    size = int(np.prod(aval.shape))
    if size <= most:
        return _Probe(np.arange(size), None)
    places = np.sort(generator.choice(size, most, replace=False, shuffle=False))
    weights = generator.uniform(0.5, 1.0, size) * generator.choice([-1.0, 1.0], size)
    # Rounded to the dtype of the result, as in a cotangent, so that both sides use equal weights.
    weights = weights.astype(aval.dtype)
    return _Probe(places, weights.astype(np.complex128 if _is_complex(aval) else np.float64))


def _labels(aval: Any, probe: _Probe) -> list[str]:
    labels = []
    for place in probe.places:
        index = list(map(int, np.unravel_index(place, aval.shape)))
        labels.append(f" at {index}" if index else "")
    if _is_complex(aval):
        labels = [
            *(f"{one}, real part," for one in labels),
            *(f"{one}, imaginary part," for one in labels),
        ]
    return labels if probe.weights is None else [*labels, ", summed with random signs,"]
