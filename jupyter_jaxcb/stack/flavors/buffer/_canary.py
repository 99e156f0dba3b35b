"""``check=True``: find outputs that a buffer callback did not write."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...results import ResultError, kind_of

# A function may happen to write the canary itself: for a byte, once in 256. Only findings less
# likely than this are reported.
_CHANCE = 1e-9
_SURE = 4  # bytes; an element this wide practically never equals its canary by chance


def run_checked(
    run: Callable[[], None],
    outs: Sequence[np.ndarray],
    paths: Sequence[str],
    name: str,
    again: bool,
) -> None:
    """Call ``run()`` and check that it writes every element of `outs`.

    The outputs are first filled with random values, the canary. If some elements still hold it
    afterwards, `run` is called again on the complement of its bytes: elements that hold the canary
    both times were not written. If `run` must not be called again, only findings that cannot be
    chance are reported.

    Args:
        run: calls the host function.
        outs: the outputs it should write.
        paths: their paths in the declared structure, for the message.
        name: the name of the host function.
        again: whether it may be called twice.

    Raises:
        ResultError: if it did not write every element; names the output and the first element.
    """
    canaries = [_random(out, ordinary=again) for out in outs]
    run()
    untouched = [_shows(out, canary) for out, canary in zip(outs, canaries, strict=True)]
    if again and any(map(np.any, untouched)):
        for out, canary in zip(outs, canaries, strict=True):
            _bytes(out)[...] = ~canary
        run()
        untouched = [
            before & _shows(out, ~canary)
            for before, out, canary in zip(untouched, outs, canaries, strict=True)
        ]
    elif not again:
        untouched = [
            _beyond_chance(where, out.dtype.itemsize)
            for where, out in zip(untouched, outs, strict=True)
        ]
    for out, where, path in zip(outs, untouched, paths, strict=True):
        if where.any():
            count = f"{int(where.sum()):,}"
            if again or out.dtype.itemsize >= _SURE:
                first = np.unravel_index(int(where.argmax()), out.shape)
                place = f", the first at {list(map(int, first))}"
            else:  # some may have been written by chance
                count, place = f"about {count}", ""
            raise ResultError(
                f"{name} did not write {count} of the {out.size:,} elements of out{path} "
                f"{out.dtype.name}{list(out.shape)}{place}: they hold arbitrary values. Write "
                "every element, for example start with out[...] = 0."
            )


def _bytes(out: np.ndarray) -> np.ndarray:
    """View the memory of `out` as bytes, one row per element."""
    return out.reshape(-1).view(np.uint8).reshape(out.size, out.dtype.itemsize)


def _random(out: np.ndarray, *, ordinary: bool) -> np.ndarray:
    """Fill `out` with random values and return their bytes.

    Args:
        out: the array.
        ordinary: keep floating-point numbers, and the complements of their bytes, between 1 and 4
            in magnitude. Most random bytes are numbers that change nothing when they are added to
            others, and some are NaN. They are harder to write by chance, though.
    """
    memory, rng = _bytes(out), np.random.default_rng()
    kind = kind_of(out.dtype)
    if ordinary and kind == "f":
        out[...] = rng.uniform(1, 2, out.shape)
    elif ordinary and kind == "c":
        out[...] = rng.uniform(1, 2, out.shape) + 1j * rng.uniform(1, 2, out.shape)
    else:
        memory[...] = rng.integers(0, 256, memory.shape, np.uint8)
    return memory.copy()


def _shows(out: np.ndarray, canary: np.ndarray) -> np.ndarray:
    """Return a mask of the elements whose bytes all equal `canary`."""
    return (_bytes(out) == canary).all(axis=1)


def _beyond_chance(untouched: np.ndarray, itemsize: int) -> np.ndarray:
    """Return `untouched`, or an empty mask if that many matches may well be chance.

    The number of elements that equal the canary by chance is Poisson distributed.
    """
    count, likely = int(untouched.sum()), untouched.size * 256.0**-itemsize
    if count <= likely:
        return np.zeros_like(untouched)
    logarithm = count * math.log(likely) - likely - math.lgamma(count + 1)
    return untouched if logarithm < math.log(_CHANCE) else np.zeros_like(untouched)
