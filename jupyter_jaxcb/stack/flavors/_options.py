"""The options of pure, io and debug callbacks, and their validation.

`BufferOptions` is in `dispatch`, which uses it.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from ..compiled import check_compile
from ..core import ExecutorOptions, Options, check_arrays
from ..executors import check_spread
from ..queued import check_queued
from ._vmap import check_vmap_method


@dataclasses.dataclass(frozen=True, kw_only=True)
class PureOptions(Options):
    """The options of a pure callback; see `jupyter_jaxcb.pure`."""

    vmap_method: str | None = "sequential"
    arrays: str = "numpy"
    sharding: Any = None
    cast: bool = False
    derivative: str | None = dataclasses.field(default=None, compare=False)  # not part of a program
    spread: ExecutorOptions | None = None
    compile: str | None = None

    # Not in __post_init__: the generated __init__ would show up as a frame in tracebacks.
    def validated(self) -> Self:
        """Return these options; raise ValueError for unknown or incompatible values."""
        __tracebackhide__ = True
        check_vmap_method(self.vmap_method)
        check_arrays(self.arrays)
        if self.derivative not in (None, "finite"):
            raise ValueError(
                f"unknown derivative {self.derivative!r}. Pass derivative='finite' or None, or "
                "define a rule with defjvp or defvjp."
            )
        check_spread(self.spread, self.arrays)
        check_compile("pure", self)
        return self


@dataclasses.dataclass(frozen=True, kw_only=True)
class IoOptions(Options):
    """The options of an io callback; see `jupyter_jaxcb.io`."""

    vmap_method: str | None = "sequential"
    ordered: bool = False
    arrays: str = "numpy"
    sharding: Any = None
    cast: bool = False
    spread: ExecutorOptions | None = None
    compile: str | None = None
    queued: bool = False
    on_full: str = "wait"

    def validated(self) -> Self:
        """Return these options; see `PureOptions.validated`."""
        __tracebackhide__ = True
        check_vmap_method(self.vmap_method, ordered=self.ordered)
        check_arrays(self.arrays)
        check_spread(self.spread, self.arrays, ordered=self.ordered)
        check_compile("io", self)
        check_queued(self, self.spread and "executor=", self.compile and "compile=")
        return self


@dataclasses.dataclass(frozen=True, kw_only=True)
class DebugOptions(Options):
    """The options of a debug callback; see `jupyter_jaxcb.debug`."""

    vmap_method: str | None = "sequential"
    ordered: bool = False
    partitioned: bool = False
    arrays: str = "numpy"
    queued: bool = False
    on_full: str = "wait"

    def validated(self) -> Self:
        """Return these options; see `PureOptions.validated`."""
        __tracebackhide__ = True
        check_vmap_method(self.vmap_method, ordered=self.ordered, partitioned=self.partitioned)
        check_arrays(self.arrays)
        check_queued(self)
        return self
