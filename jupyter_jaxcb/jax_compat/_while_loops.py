"""Work around JAX's lowering of vmapped while loops and its hoisting out of scans."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import jax
import jax.numpy as jnp

from ._private import JaxFunction, optional_module
from ._required import has_ordered_effects, mlir

_JAX = os.path.join(os.path.dirname(jax.__file__), "")
_loops = optional_module("jax._src.lax.control_flow.loops")
_while_p: Any = getattr(_loops, "while_p", None)
_while_lowering: Any = getattr(_loops, "_while_lowering", None)
_core = optional_module("jax._src.core")
_jaxpr_as_fun: Any = getattr(_core, "jaxpr_as_fun", None)
_subjaxprs: Any = getattr(_core, "subjaxprs", None)
_partial_eval = optional_module("jax._src.interpreters.partial_eval")
_Trace = Annotated[Any, "jax._src.interpreters.partial_eval.JaxprTrace"]
_held: set[Any] = set()  # primitives
# JAX's functions that hoist loop-invariant code out of a scan.
_HOISTING = (
    JaxFunction("jax._src.lax.control_flow.loops", "_scan_known_hoisting"),
    JaxFunction("jax._src.lax.control_flow.loops", "_scan_partial_eval_custom"),
)


def hold_finished_elements(primitive: Any) -> None:
    """Let vmapped while loops make ordered calls of `primitive` in their predicate.

    JAX's own lowering of such a loop keeps updating batch elements that have finished. All other
    loops still use JAX's lowering, also those in which only JAX's own callbacks are ordered. If a
    JAX moves the rule, this does nothing, and such loops are rejected (`lowers_broken_predicate`).
    Checked against JAX 0.10.2, 0.11.2 and 0.12.0.
    """
    if None in (_while_p, _while_lowering, _jaxpr_as_fun, _subjaxprs) or primitive in _held:
        return
    if not _held:
        mlir.register_lowering(_while_p, _lower)
    _held.add(primitive)


def leave_loops_to_jax() -> None:
    """Undo `hold_finished_elements`; such loops are rejected until its next call."""
    if _held:
        mlir.register_lowering(_while_p, _while_lowering)
        _held.clear()


def stay_in_loops(primitive: Any) -> None:
    """Keep `primitive` inside a differentiated scan even if its operands are loop-invariant.

    JAX evaluates equations that depend only on constants once, before the scan (loop-invariant code
    motion). This makes the operands look loop-dependent. Checked against JAX 0.10.2, 0.11.2
    and 0.12.0. If a JAX renames the functions, or the primitive has no operands, it is hoisted, and
    the recording says so.
    """
    rules = getattr(_partial_eval, "custom_partial_eval_rules", None)
    kind = getattr(_partial_eval, "JaxprTrace", None)
    needed = ("instantiate_const", "default_process_primitive")
    if rules is None or not all(hasattr(kind, name) for name in needed):
        return

    def rule(trace: _Trace, *tracers: Any, **params: Any) -> Any:
        if _is_hoisting():
            tracers = tuple(map(trace.instantiate_const, tracers))
        return trace.default_process_primitive(primitive, tracers, params)

    rules[primitive] = rule


def _is_hoisting() -> bool:
    frame = sys._getframe()
    while frame is not None:
        if any(function.is_run_by(frame.f_code) for function in _HOISTING):
            return True
        frame = frame.f_back
    return False


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
        or any(map(_calls_in_order, _subjaxprs(jaxpr)))
    )


def _element_by_element(
    cond_jaxpr: Any, body_jaxpr: Any, cond_nconsts: int, body_nconsts: int
) -> Any:
    """Return the loop with its predicate computed in the body, so that the predicate is pure."""
    predicate = _jaxpr_as_fun(cond_jaxpr)
    body = _jaxpr_as_fun(body_jaxpr)

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

    In all versions that lowering keeps updating finished batch elements, which gives wrong numbers
    without an error. Only the frame of the rule shows it, wherever in JAX it is, by the predicate
    that it lowers. If a JAX renames the parameter `cond_jaxpr` of its while loops, such a loop
    gives the numbers that it gives with JAX's own ordered callbacks.
    """
    frame = sys._getframe()
    while frame is not None:
        # Not a batching rule, which runs while an eager loop is lowered and has no `ctx`.
        if frame.f_code.co_filename.startswith(_JAX) and "ctx" in frame.f_locals:
            predicate = frame.f_locals.get("cond_jaxpr")
            if predicate is not None and _is_batched(predicate) and has_ordered_effects(predicate):
                return True
        frame = frame.f_back
    return False
