"""Annotate host calls for JAX's profiler, so that XProf shows them beside XLA's events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from ...recording import LoweredSite


def annotated(lowered: LoweredSite, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap `function` so that each call is a trace annotation with the host function's name."""
    site = lowered.site
    name = f"host call {site.function}"

    def call(*operands: Any) -> Any:
        __tracebackhide__ = True
        with jax.profiler.TraceAnnotation(name, flavor=site.flavor, where=site.where):
            return function(*operands)

    return call
