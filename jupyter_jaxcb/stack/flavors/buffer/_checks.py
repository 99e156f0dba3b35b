"""Check which arrays a host function can borrow from XLA, and which of them can be aliased."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...lowering import bits


def check_borrowable(name: str, avals: Sequence[Any]) -> None:
    """Raise TypeError for PRNG keys, and for dtypes narrower than a byte."""
    __tracebackhide__ = True
    for aval in avals:
        if jnp.issubdtype(aval.dtype, jax.dtypes.extended):
            raise TypeError(
                f"cannot pass {aval.dtype} to the buffer callback {name}: NumPy has no PRNG keys. "
                "Pass the key's data: jax.random.key_data(key)."
            )
        if bits(aval.dtype) < 8:
            raise TypeError(
                f"cannot pass {aval.dtype} to the buffer callback {name}: XLA packs several of "
                "these numbers into a byte, NumPy does not. Convert to int8, or register it as "
                "pure."
            )


def check_aliases(
    aliases: Iterable[tuple[int, int]], operands: Sequence[Any], results: Sequence[Any]
) -> None:
    """Raise ValueError for an operand and a result, given by index, that cannot share memory."""
    __tracebackhide__ = True
    for operand, result in aliases:
        pair = f"input_output_aliases contains the mapping '{operand}:{result}'"
        for what, index, there in (("input", operand, operands), ("output", result, results)):
            if not 0 <= index < len(there):
                raise ValueError(
                    f"{pair} with {what} index {index} outside the range [0, {len(there)}). Use "
                    "the index among the flat arrays."
                )
        given, written = operands[operand], results[result]
        if (given.shape, given.dtype) != (written.shape, written.dtype):
            raise ValueError(
                f"{pair} referring to an input with abstract value {given.str_short()} and an "
                f"output with a different abstract value {written.str_short()}. Aliased arrays "
                "need the same shape and dtype."
            )
