"""The options of pure, io and debug callbacks, and what goes with what.

Those of buffer callbacks are `BufferOptions`, in `dispatch`, which acts on them.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from ..core import ExecutorOptions, Options, check_arrays
from ..executors import check_spread
from ._vmap import check_vmap_method


@dataclasses.dataclass(frozen=True, kw_only=True)
class PureOptions(Options):
    """How a pure callback is called; see `jupyter_jaxcb.pure`."""

    vmap_method: str | None = "sequential"
    arrays: str = "numpy"
    sharding: Any = None
    cast: bool = False
    derivative: str | None = dataclasses.field(default=None, compare=False)  # no part of a program
    spread: ExecutorOptions | None = None

    # Not in __post_init__: users would see the frame of the __init__ that dataclasses make.
    def validated(self) -> Self:
        """These options; raises ValueError for one that is unknown, or does not go with another."""
        __tracebackhide__ = True
        check_vmap_method(self.vmap_method)
        check_arrays(self.arrays)
        if self.derivative not in (None, "finite"):
            raise ValueError(
                f"unknown derivative {self.derivative!r}: it is None or 'finite'. Pass "
                "derivative='finite', or give a rule: defjvp or defvjp."
            )
        check_spread(self.spread, self.arrays)
        return self


@dataclasses.dataclass(frozen=True, kw_only=True)
class IoOptions(Options):
    """How an io callback is called; see `jupyter_jaxcb.io`."""

    ordered: bool = False
    arrays: str = "numpy"
    sharding: Any = None
    cast: bool = False
    spread: ExecutorOptions | None = None

    def validated(self) -> Self:
        """As for `PureOptions`."""
        __tracebackhide__ = True
        check_arrays(self.arrays)
        check_spread(self.spread, self.arrays, ordered=self.ordered)
        return self


@dataclasses.dataclass(frozen=True, kw_only=True)
class DebugOptions(Options):
    """How a debug callback is called; see `jupyter_jaxcb.debug`."""

    ordered: bool = False
    partitioned: bool = False
    arrays: str = "numpy"

    def validated(self) -> Self:
        """As for `PureOptions`."""
        __tracebackhide__ = True
        check_arrays(self.arrays)
        return self
