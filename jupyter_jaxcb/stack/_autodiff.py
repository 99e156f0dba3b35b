"""Derivative rules of a registered pure callback: jax.custom_jvp and custom_vjp, as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax


def with_jvp(
    primal: Callable[..., Any],
    rule: Callable[..., Any],
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
) -> Callable[..., Any]:
    """`primal` with a forward-mode rule, as ``jax.custom_jvp(primal).defjvp(rule)``."""
    differentiable = jax.custom_jvp(primal, nondiff_argnums=tuple(nondiff_argnums))
    differentiable.defjvp(rule, symbolic_zeros=symbolic_zeros)
    return differentiable


def with_vjp(
    primal: Callable[..., Any],
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
) -> Callable[..., Any]:
    """`primal` with a reverse-mode rule, as ``jax.custom_vjp(primal).defvjp(...)``."""
    differentiable = jax.custom_vjp(primal, nondiff_argnums=tuple(nondiff_argnums))
    differentiable.defvjp(forward, backward, symbolic_zeros=symbolic_zeros)
    return differentiable
