"""Work around JAX's lowering of vmapped while loops and its hoisting out of scans."""

from __future__ import annotations

import os
from typing import Any

import jax
import jax.numpy as jnp
from jax._src.core import jaxpr_as_fun, subjaxprs
from jax._src.interpreters.partial_eval import custom_partial_eval_rules
from jax._src.lax.control_flow.loops import _while_lowering, while_p

from ._calls import has_ordered_effects, mlir
from ._subjects import code_of, frames

_JAX = os.path.join(os.path.dirname(jax.__file__), "")
_held: set[Any] = set()  # primitives


def hold_finished_elements(primitive: Any) -> None:
    """Let vmapped while loops make ordered calls of `primitive` in their predicate.

    JAX's own lowering of such a loop keeps updating batch elements that have finished. All other
    loops still use JAX's lowering, also those in which only JAX's own callbacks are ordered.
    """
    if not _held:
        mlir.register_lowering(while_p, _lower)
    _held.add(primitive)


def leave_loops_to_jax() -> None:
    """Undo `hold_finished_elements`; such loops are rejected until its next call."""
    if _held:
        mlir.register_lowering(while_p, _while_lowering)
        _held.clear()


def stay_in_loops(primitive: Any) -> None:
    """Keep `primitive` inside a differentiated scan even if its operands are loop-invariant.

    JAX evaluates equations that depend only on constants once, before the scan (loop-invariant code
    motion). This makes the operands look loop-dependent. A primitive without operands is hoisted.
    """

    def rule(trace: Any, *tracers: Any, **params: Any) -> Any:
        if _is_hoisting():
            tracers = tuple(map(trace.instantiate_const, tracers))
        return trace.default_process_primitive(primitive, tracers, params)

    custom_partial_eval_rules[primitive] = rule


def _is_hoisting() -> bool:
    loops = "lax.control_flow.loops"
    hoisting = (
        code_of(loops, "_scan_known_hoisting"),
        code_of(loops, "_scan_partial_eval_custom"),
    )
    return any(frame.f_code in hoisting for frame in frames())


def _lower(ctx: Any, *args: Any, cond_jaxpr: Any, body_jaxpr: Any, **params: Any) -> Any:
    if _is_batched(cond_jaxpr) and _calls_in_order(getattr(cond_jaxpr, "jaxpr", cond_jaxpr)):
        loop = _element_by_element(cond_jaxpr, body_jaxpr, **params)
        return mlir.lower_fun(loop)(ctx, *args)
    return _while_lowering(ctx, *args, cond_jaxpr=cond_jaxpr, body_jaxpr=body_jaxpr, **params)


def _is_batched(predicate: Any) -> bool:
    """Return whether the closed jaxpr `predicate` decides for each element of a batch."""
    return bool(predicate.out_avals[0].shape)


def _calls_in_order(jaxpr: Any) -> bool:
    """Return whether `jaxpr`, or a jaxpr in it, has an ordered call of a held primitive."""
    return has_ordered_effects(jaxpr) and (
        any(eqn.primitive in _held and has_ordered_effects(eqn) for eqn in jaxpr.eqns)
        or any(map(_calls_in_order, subjaxprs(jaxpr)))
    )


def _element_by_element(
    cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int
) -> Any:
    """Return the loop with its predicate computed in the body, so that the predicate is pure."""
    predicate, body = jaxpr_as_fun(cond_jaxpr), jaxpr_as_fun(body_jaxpr)

    def loop(*args: Any) -> Any:
        first = cond_nconsts + body_nconsts
        of_predicate, of_body, carry = args[:cond_nconsts], args[cond_nconsts:first], args[first:]

        def step(state: Any) -> Any:
            on, old = state
            new = body(*of_body, *old)
            carry = [_select(on, one, other) for one, other in zip(new, old, strict=True)]
            return predicate(*of_predicate, *carry)[0], carry

        start = predicate(*of_predicate, *carry)[0], list(carry)
        return jax.lax.while_loop(lambda state: jnp.any(state[0]), step, start)[1]

    return loop


def _select(on: Any, new: Any, old: Any) -> Any:
    # The batch axis comes first in every carry: JAX batches even those that were unbatched.
    return jnp.where(on.reshape(on.shape + (1,) * (jnp.ndim(new) - on.ndim)), new, old)


def lowers_broken_predicate() -> bool:
    """Return whether JAX is lowering a vmapped while loop with an ordered effect in its predicate.

    That lowering keeps updating finished batch elements, which gives wrong numbers without an
    error. The predicate is found in the frame of the lowering rule, wherever in JAX that is.
    """
    for frame in frames():
        # Not a batching rule, which runs while an eager loop is lowered and has no `ctx`.
        if frame.f_code.co_filename.startswith(_JAX) and "ctx" in frame.f_locals:
            predicate = frame.f_locals.get("cond_jaxpr")
            if predicate is not None and _is_batched(predicate) and has_ordered_effects(predicate):
                return True
    return False
