"""``check=True``: outputs that a buffer callback forgot to write."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..results import ResultError

# A function may write by chance what the canary is, in bytes one time of 256. Told is only what is
# less likely than this.
_CHANCE = 1e-9
_SURE = 4  # bytes of an element that nothing writes by chance


def checked(
    run: Callable[[], None],
    outs: Sequence[np.ndarray],
    paths: Sequence[str],
    name: str,
    again: bool,
) -> None:
    """``run()``, which is to write all of `outs`.

    They are filled with random bytes before. Where one of these is still there, `run` is called
    once more, on their complement: what shows neither was written. Where it must not be called
    again, what cannot be chance is told.

    Args:
        run: calls the host function.
        outs: that it writes into.
        paths: of these in the declared structure, for the message.
        name: of the host function.
        again: whether it may be called twice.

    Raises:
        ResultError: it did not write all; names the output, and the first element.
    """
    canaries = [_random(out) for out in outs]
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
            else:  # some of these may be what it wrote
                count, place = f"about {count}", ""
            raise ResultError(
                f"{name} did not write {count} of the {out.size:,} elements of out{path} "
                f"{out.dtype.name}{list(out.shape)}{place}: what stands there is whatever the "
                "memory held. Write all of it, out[...] = 0 at the start, say."
            )


def _bytes(out: np.ndarray) -> np.ndarray:
    """The memory of `out`, a row for each element."""
    return out.reshape(-1).view(np.uint8).reshape(out.size, out.dtype.itemsize)


def _random(out: np.ndarray) -> np.ndarray:
    """Fills `out`, and returns what with."""
    memory = _bytes(out)
    canary = np.random.default_rng().integers(0, 256, memory.shape, np.uint8)
    memory[...] = canary
    return canary


def _shows(out: np.ndarray, canary: np.ndarray) -> np.ndarray:
    """Of which elements all bytes are those of `canary`."""
    return (_bytes(out) == canary).all(axis=1)


def _beyond_chance(untouched: np.ndarray, itemsize: int) -> np.ndarray:
    """`untouched`, or nothing of it if the function may well have written so many by chance.

    How many it writes by chance is Poisson distributed.
    """
    count, likely = int(untouched.sum()), untouched.size * 256.0**-itemsize
    if count <= likely:
        return np.zeros_like(untouched)
    logarithm = count * math.log(likely) - likely - math.lgamma(count + 1)
    return untouched if logarithm < math.log(_CHANCE) else np.zeros_like(untouched)
