"""Host calls as annotations of JAX's profiler, so that XProf shows them beside what XLA does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from ...recording import LoweredSite


def annotated(lowered: LoweredSite, function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, each call of which is a slice named after the host function and its line."""
    site = lowered.site
    name = f"host call {site.function}"

    def call(*operands: Any) -> Any:
        __tracebackhide__ = True
        with jax.profiler.TraceAnnotation(name, flavor=site.flavor, where=site.where):
            return function(*operands)

    return call
