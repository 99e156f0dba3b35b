"""Nests that differentiate with respect to ``x``, custom derivative rules and checkpoints."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.ad_checkpoint import checkpoint_name

from ._arithmetic import State, added, reduced, signed
from ._programs import Nest

_policies = jax.checkpoint_policies
POLICIES = {
    None: None,
    "nothing": _policies.nothing_saveable,
    "everything": _policies.everything_saveable,
    "dots": _policies.dots_saveable,
    "names": _policies.save_only_these_names("x"),
    "all but names": _policies.save_anything_except_these_names("x"),
}


def _of_x(run: Any, nest: Nest, state: State) -> Callable[[Any], tuple[Any, State]]:
    def function(x: Any) -> tuple[Any, State]:
        after = run(nest.blocks[0], {**state, "x": x})
        return after["x"], after

    return function


def _grad(run: Any, nest: Nest, state: State) -> State:
    def loss(x: Any) -> tuple[Any, State]:
        y, after = _of_x(run, nest, state)(x)
        return jnp.sum(y * 2), after

    is_complex = jnp.iscomplexobj(state["x"])
    slope, after = run.keep(jax.grad(loss, has_aux=True, holomorphic=is_complex)(state["x"]))
    after = after if nest.variant else state
    return {**after, "x": added(after["x"], slope)}


def _vjp(run: Any, nest: Nest, state: State) -> State:
    y, pull, after = jax.vjp(_of_x(run, nest, state), state["x"], has_aux=True)
    (slope,) = run.keep(pull(jnp.ones_like(y)))
    if nest.variant:
        (again,) = run.keep(pull(y))
        slope = slope + again
    return {**after, "x": reduced(y + slope)}


def _jvp(run: Any, nest: Nest, state: State) -> State:
    x = state["x"]
    y, slope, after = jax.jvp(_of_x(run, nest, state), (x,), (jnp.ones_like(x),), has_aux=True)
    return {**after, "x": reduced(y + slope)}


def _linearize(run: Any, nest: Nest, state: State) -> State:
    x = state["x"]
    y, push, after = jax.linearize(_of_x(run, nest, state), x, has_aux=True)
    slope = run.keep(push(jnp.ones_like(x)))
    if nest.variant:
        slope = slope + run.keep(push(x))
    return {**after, "x": reduced(y + slope)}


def _custom_jvp(run: Any, nest: Nest, state: State) -> State:
    function = jax.custom_jvp(functools.partial(run, nest.blocks[0]))

    @function.defjvp
    def _rule(primals: Any, tangents: Any) -> tuple[State, State]:
        (inner,), (slopes,) = primals, tangents
        after = run(nest.blocks[1], inner)
        return function(inner), {**slopes, "x": signed(after["x"], slopes["x"])}

    return function(state)


def _custom_vjp(run: Any, nest: Nest, state: State) -> State:
    primal, forward, backward = nest.blocks
    function = jax.custom_vjp(functools.partial(run, primal))

    def forwards(inner: State) -> tuple[State, State]:
        after = run(forward, run(primal, inner))
        return after, after if nest.variant else inner

    def backwards(residuals: State, slopes: State) -> tuple[State]:
        after = run(backward, {**residuals, "x": added(residuals["x"], slopes["x"])})
        return ({**slopes, "x": signed(after["x"], slopes["x"])},)

    function.defvjp(forwards, backwards)
    return function(state)


def _checkpoint(run: Any, nest: Nest, state: State) -> State:
    def function(inner: State) -> State:
        after = run(nest.blocks[0], inner)
        return {**after, "x": checkpoint_name(after["x"], "x")}

    policy = POLICIES[nest.policy]
    return jax.checkpoint(function, policy=policy, prevent_cse=nest.variant)(state)


KINDS = {
    "grad": _grad,
    "vjp": _vjp,
    "jvp": _jvp,
    "linearize": _linearize,
    "custom_jvp": _custom_jvp,
    "custom_vjp": _custom_vjp,
    "checkpoint": _checkpoint,
}
