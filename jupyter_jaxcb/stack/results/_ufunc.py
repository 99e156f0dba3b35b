"""NumPy's and SciPy's ufuncs know themselves what they return."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import numpy as np


@dataclasses.dataclass(frozen=True)
class UfuncResult:
    """The declared result of a ufunc: the shapes of its arguments broadcast, its own dtypes."""

    ufunc: np.ufunc

    def __call__(self, *args: Any) -> Any:
        """The result for arguments that have shape and dtype, as structs.

        Raises:
            ValueError: the ufunc does not take so many arguments, these shapes or dtypes.
        """
        name, count = self.ufunc.__name__, self.ufunc.nin
        given = ", ".join(map(repr, args))
        if len(args) != count:
            raise ValueError(f"{name} takes {count} arguments, not {len(args)}: {given}.")
        try:
            shape = np.broadcast_shapes(*(tuple(x.shape) for x in args))
            dtypes = [np.dtype(x.dtype) for x in args]
            answered = self.ufunc.resolve_dtypes((*dtypes, *[None] * self.ufunc.nout))[count:]
        except (ValueError, TypeError) as error:
            raise ValueError(f"cannot tell the result of {name}({given}): {error}") from None
        # While x64 is off, what it computes in 64 bits is rounded to 32.
        found = [
            jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)) for dtype in answered
        ]
        return found[0] if len(found) == 1 else tuple(found)


def ufunc_result(function: Any) -> UfuncResult | None:
    """The result of an elementwise ufunc; None for anything else."""
    elementwise = isinstance(function, np.ufunc) and function.signature is None
    return UfuncResult(function) if elementwise else None
