"""Nests that call, batch and repeat: jit, vmap, loops and branches."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ._arithmetic import State, added, gathered, spread, stirred, stopped
from ._programs import LEAVES, Nest


def _jit(run: Any, nest: Nest, state: State) -> State:
    inner = jax.jit(functools.partial(run, nest.blocks[0]))
    return inner(inner(state)) if nest.variant else inner(state)


def _vmap(run: Any, nest: Nest, state: State) -> State:
    ins = dict(zip(LEAVES, nest.in_axes, strict=True))
    outs = dict(zip(LEAVES, nest.out_axes, strict=True))
    elements = {leaf: spread(state[leaf], nest.size, axis) for leaf, axis in ins.items()}
    batched = run.keep(jax.vmap(functools.partial(run, nest.blocks[0]), (ins,), outs)(elements))
    return {leaf: gathered(batched[leaf], axis) for leaf, axis in outs.items()}


def _scan(run: Any, nest: Nest, state: State) -> State:
    def body(carry: State, i: Any) -> tuple[State, Any]:
        after = run(nest.blocks[0], stirred(carry, i))
        return after, jax.lax.stop_gradient(after)

    indices = jnp.arange(nest.size, dtype=jnp.int32)
    last, steps = jax.lax.scan(body, state, indices, reverse=nest.variant)
    return {leaf: added(last[leaf], gathered(steps[leaf], 0)) for leaf in LEAVES}


def _number(state: State) -> Any:
    return jnp.sum(state["n"], dtype=jnp.int32)


def _fori(run: Any, nest: Nest, state: State) -> State:
    state = stopped(state) if nest.stopped else state
    trips = _number(state) % 4 if nest.dynamic else nest.size
    return jax.lax.fori_loop(
        0, trips, lambda i, carry: run(nest.blocks[0], stirred(carry, i)), state
    )


def _while(run: Any, nest: Nest, state: State) -> State:
    state = stopped(state) if nest.stopped else state
    trips = _number(state) % 4 if nest.dynamic else nest.size

    def go_on(carry: tuple[Any, State]) -> Any:
        after = run(nest.blocks[0], carry[1])
        total = sum(jnp.sum(jnp.real(x).astype(jnp.float32)) for x in after.values())
        return (carry[0] < trips) & (total >= 0)  # always true, but XLA cannot know

    def body(carry: tuple[Any, State]) -> tuple[Any, State]:
        i, inner = carry
        return i + 1, run(nest.blocks[1], stirred(inner, i))

    return jax.lax.while_loop(go_on, body, (jnp.int32(0), state))[1]


def _cond(run: Any, nest: Nest, state: State) -> State:
    chosen = _number(state) + nest.size if nest.dynamic else nest.size
    branches = [functools.partial(run, block) for block in nest.blocks]
    return jax.lax.cond(chosen % 2 == 0, *branches, state)


def _switch(run: Any, nest: Nest, state: State) -> State:
    chosen = _number(state) + nest.size if nest.dynamic else nest.size
    branches = [functools.partial(run, block) for block in nest.blocks]
    return jax.lax.switch(chosen % 3, branches, state)


KINDS = {
    "jit": _jit,
    "vmap": _vmap,
    "scan": _scan,
    "fori": _fori,
    "while": _while,
    "cond": _cond,
    "switch": _switch,
}
