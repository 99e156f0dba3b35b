"""JAX's avals as recorded facts."""

from __future__ import annotations

import functools
from typing import Any

from ...recording import Aval


def to_aval(aval: Any) -> Aval:
    """The aval of anything with shape and dtype, as a recorded fact."""
    return Aval(tuple(aval.shape), _name(aval.dtype))


_name = functools.cache(str)  # of a dtype; numpy composes it anew every time
