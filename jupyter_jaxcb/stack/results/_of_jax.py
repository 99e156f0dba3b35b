"""Refuse results of JAX's own callbacks that JAX would refuse, while the call is still known."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from ...recording import Aval

_name = functools.cache(str)  # NumPy builds the string on every call


def refuse_as_jax(returned: Any, declared: Sequence[Aval]) -> None:
    """Raise JAX's error, with its message, if JAX would refuse what a callback has returned.

    Args:
        returned: the leaves that the callback returned.
        declared: shapes and dtypes of the results.
    """
    if len(returned) != len(declared):
        raise RuntimeError(
            "Mismatched number of outputs from callback. "
            f"Expected: {len(declared)}, Actual: {len(returned)}"
        )
    for place, (value, aval) in enumerate(zip(returned, declared, strict=True)):
        array = value if hasattr(value, "shape") and hasattr(value, "dtype") else np.asarray(value)
        if tuple(array.shape) != aval.shape:
            _refuse("shape", place, aval.shape, tuple(array.shape))
        if _name(array.dtype) != aval.dtype:
            dtype = _name(jax.dtypes.canonicalize_dtype(array.dtype))
            if dtype != aval.dtype:
                _refuse("dtype", place, aval.dtype, dtype)


def _refuse(what: str, place: int, declared: object, returned: object) -> None:
    raise RuntimeError(
        f"Incorrect output {what} for return value #{place}: "
        f"Expected: {declared}, Actual: {returned}"
    )
