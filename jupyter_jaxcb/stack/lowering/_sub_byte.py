"""Pass numbers narrower than a byte as whole bytes, to work around a bug of jaxlib.

Up to jaxlib 0.10.1 (seen in 0.10.0), an array with an odd number of 4-bit
numbers arrives in Python, and back in XLA, with garbage in its last element.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import ml_dtypes
import numpy as np

from ... import jax_compat

_SOUND_FROM = (0, 10, 2)
IS_SOUND = tuple(map(int, re.findall(r"\d+", version("jaxlib"))[:3])) >= _SOUND_FROM


def bits(dtype: Any) -> int:
    """Return the number of bits of one number, which may be less than 8."""
    for info in (ml_dtypes.iinfo, ml_dtypes.finfo):
        try:
            return info(dtype).bits
        except ValueError:  # of another kind
            continue
    return 8 * dtype.itemsize


def in_whole_bytes(
    ctx: Any, call: Callable[..., tuple], operands: Sequence[Any]
) -> tuple[Any, Callable[..., tuple], Sequence[Any], Callable[[Sequence[Any]], list[Any]]]:
    """Convert a custom call to whole bytes.

    Returns:
        A context, call and operands without sub-byte dtypes, and a function that converts the IR
        values of its results back.
    """
    given, returned = ctx.avals_in, ctx.avals_out
    wide_in, wide_out = list(map(_wide, given)), list(map(_wide, returned))
    if wide_in == list(given) and wide_out == list(returned):
        return ctx, call, operands, list

    def crossing(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        narrow = (a.astype(aval.dtype, copy=False) for a, aval in zip(arrays, given, strict=True))
        wide = zip(call(*narrow), wide_out, strict=True)
        return tuple(a.astype(aval.dtype, copy=False) for a, aval in wide)

    def convert(values: Sequence[Any], avals: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
        triples = zip(values, avals, wanted, strict=True)
        return [x if a == b else _convert(ctx, x, a, b) for x, a, b in triples]

    wide = dataclasses.replace(ctx, avals_in=wide_in, avals_out=wide_out)
    return (
        wide,
        crossing,
        convert(operands, given, wide_in),
        lambda results: convert(results, wide_out, returned),
    )


def _wide(aval: Any) -> Any:
    dtype = getattr(aval, "dtype", None)
    if not isinstance(dtype, np.dtype) or not 0 < bits(dtype) < 8:  # keys; float0 has no bits
        return aval
    kind = {"i": np.int8, "u": np.uint8, "f": np.float32}[dtype.name[0]]
    return jax_compat.shaped_array(aval.shape, np.dtype(kind))


def _convert(ctx: Any, value: Any, aval: Any, wanted: Any) -> Any:
    cast = jax_compat.mlir.lower_fun(lambda x: x.astype(wanted.dtype), multiple_results=False)
    (result,) = cast(dataclasses.replace(ctx, avals_in=[aval], avals_out=[wanted]), value)
    return result
