"""Derivative rules of a registered pure callback: jax.custom_jvp and custom_vjp, as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from . import _programs
from ._callback import HostFunction


def with_jvp(
    primal: Callable[..., Any],
    host: HostFunction,
    rule: Callable[..., Any],
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
) -> Callable[..., Any]:
    """`primal` with a forward-mode rule, as ``jax.custom_jvp(primal).defjvp(rule)``."""
    differentiable = jax.custom_jvp(primal, nondiff_argnums=tuple(nondiff_argnums))
    differentiable.defjvp(_noted(rule, host), symbolic_zeros=symbolic_zeros)
    return differentiable


def with_vjp(
    primal: Callable[..., Any],
    host: HostFunction,
    forward: Callable[..., Any],
    backward: Callable[..., Any],
    nondiff_argnums: Sequence[int],
    symbolic_zeros: bool,
) -> Callable[..., Any]:
    """`primal` with a reverse-mode rule, as ``jax.custom_vjp(primal).defvjp(forward, backward)``."""
    differentiable = jax.custom_vjp(primal, nondiff_argnums=tuple(nondiff_argnums))
    differentiable.defvjp(_noted(forward, host), backward, symbolic_zeros=symbolic_zeros)
    return differentiable


def _noted(rule: Callable[..., Any], host: HostFunction) -> Callable[..., Any]:
    """`rule`, telling that it stood in for the callback: that one is not missing then."""

    @functools.wraps(rule)
    def noted(*args: Any, **kwargs: Any) -> Any:
        _programs.rule_ran(host)
        return rule(*args, **kwargs)

    return noted
