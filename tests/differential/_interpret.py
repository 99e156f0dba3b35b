"""Runs a program with a table of callbacks: JAX's or ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ._programs import LEAVES, Callback, Nest, Program, sites

LITERAL = 3.0  # the Python number among the arguments
MODULUS = 7  # numbers stay below it

State = dict[str, Any]


class Table(NamedTuple):
    """The three functions that a program is run with."""

    pure: Callable[..., Any]
    io: Callable[..., Any]
    debug: Callable[..., Any]


def answer_leaves(
    xp: Any, program: Program, callback: Callback, leaves: list[Any]
) -> tuple[Any, ...]:
    """What a host function answers, by numpy or by jnp.

    Works for unbatched arguments and for any batch axes in front that broadcast.
    """
    ranks = [len(program.aval(leaf)[0]) for leaf in callback.args] + [0] * callback.literal
    batches = [a.shape[: a.ndim - rank] for a, rank in zip(leaves, ranks, strict=True)]
    batch = np.broadcast_shapes(*batches)
    total = int(callback.name[1:]) + 1
    for a, rank in zip(leaves, ranks, strict=True):
        total = total + xp.sum(a, axis=tuple(range(a.ndim - rank, a.ndim)))
    total = xp.broadcast_to(xp.asarray(total), batch)
    results = []
    for leaf in callback.results:
        shape, dtype = program.aval(leaf)
        mixed = total.reshape((*batch, *[1] * len(shape)))
        if leaf in callback.args:
            mixed = mixed + 2 * leaves[callback.args.index(leaf)]
        mixed = xp.broadcast_to(mixed % MODULUS, (*batch, *shape))
        results.append(mixed % 2 == 1 if leaf == "b" else mixed.astype(dtype))
    return tuple(results)


def nested_answer(callback: Callback, results: tuple[Any, ...]) -> Any:
    """Results in the structure that the callback declares."""
    if not results:
        return None
    if callback.answer == "leaf":
        return results[0]
    if callback.answer == "dict":
        return {f"r{i}": result for i, result in enumerate(results)}
    return list(results) if callback.answer == "list" else results


def nested_arguments(callback: Callback, leaves: list[Any]) -> tuple[tuple, dict[str, Any]]:
    """(args, kwargs) of the call; the flat order is the one of `leaves`, the tag comes last."""
    tag = ("tag",) * callback.tag
    if callback.style == "keywords":
        return (), {f"k{i}": leaf for i, leaf in enumerate((*leaves, *tag))}
    if callback.style == "dict":
        return ({f"k{i}": leaf for i, leaf in enumerate(leaves)}, *tag), {}
    if callback.style == "tuple":
        return (tuple(leaves), *tag), {}
    return (*leaves, *tag), {}


class Interpreter:
    """One run of a program; `calls` collects (host function, structure, arguments)."""

    def __init__(self, program: Program, table: Table) -> None:
        self.program = program
        self.table = table
        self.calls: list[tuple] = []
        self.held: list[tuple[np.ndarray, bytes]] = []  # arguments, and what they were
        self.kept: list[Any] = []  # whatever was computed eagerly, to be waited for
        self._hosts = {callback.name: self._host(callback) for callback, _ in sites(program.block)}
        self._nests: dict[str, Callable[[Nest, State], State]] = {
            kind.removeprefix("_nest_"): getattr(self, kind)
            for kind in dir(self)
            if kind.startswith("_nest_")
        }

    def start(self) -> State:
        """The state that the program is called with."""
        state = {}
        for leaf in LEAVES:
            shape, dtype = self.program.aval(leaf)
            numbers = np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) % 5
            weak = self.program.weak and leaf == "x" and shape == ()
            weak = weak and self.program.wide == self.program.x64  # a Python number has that dtype
            state[leaf] = jnp.asarray(2.0 if weak else (numbers % 2 if leaf == "b" else numbers),
                                      None if weak else dtype)  # fmt: skip
        return jax.block_until_ready(state)

    def function(self) -> Callable[[State], State]:
        """The program as a function of its state."""
        run = functools.partial(self.run, self.program.block)
        return jax.jit(run) if self.program.jitted else run

    def run(self, block: tuple, state: State) -> State:
        """The steps of a block, one after the other."""
        for step in block:
            if isinstance(step, Callback):
                state = self._call(step, state)
            else:
                state = self._nests[step.kind](step, state)
            self._keep(state)
        return state

    def _keep(self, tree: Any) -> None:
        self.kept += [x for x in jax.tree.leaves(tree) if not isinstance(x, jax.core.Tracer)]

    def _host(self, callback: Callback) -> Callable[..., Any]:
        def host(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = jax.tree.flatten((args, kwargs))
            facts = [x if isinstance(x, str) else self._seen(x) for x in leaves]
            self.calls.append((callback.name, str(tree), *facts))
            arrays = [np.asarray(x) for x in leaves if not isinstance(x, str)]
            if callback.flavor == "debug":
                return None
            return nested_answer(callback, answer_leaves(np, self.program, callback, arrays))

        host.__name__ = host.__qualname__ = callback.name
        return host

    def _seen(self, x: Any) -> tuple:
        is_array = isinstance(x, (np.ndarray, jax.Array))
        array = np.asarray(x)
        self.held.append((array, array.tobytes()))
        return array.shape, array.dtype.name, array.tobytes(), is_array, array.flags.writeable

    def _call(self, callback: Callback, state: State) -> State:
        leaves = [state[leaf] for leaf in callback.args]
        if callback.stopped:
            leaves = [jax.lax.stop_gradient(leaf) for leaf in leaves]
        leaves += [LITERAL] * callback.literal
        results = jax.tree.leaves(self._bind(callback, leaves))
        self._keep(results)
        if not callback.used:
            return state
        state = dict(state)
        for leaf, result in zip(callback.results, results, strict=True):
            if leaf == "b":
                state["b"] = state["b"] ^ result
            else:
                # With a rule the tangent comes through the callback, otherwise around it.
                state[leaf] = (result if callback.ruled else state[leaf] + result) % MODULUS
        return state

    def _bind(self, callback: Callback, leaves: list[Any]) -> Any:
        if not callback.ruled:
            return self._bind_plainly(callback, leaves)
        ruled = jax.custom_jvp(lambda x: jax.tree.leaves(self._bind_plainly(callback, [x]))[0])

        @ruled.defjvp
        def _rule(primals: Any, tangents: Any) -> Any:
            return ruled(*primals), tangents[0]

        return ruled(*leaves)

    def _bind_plainly(self, callback: Callback, leaves: list[Any]) -> Any:
        args, kwargs = nested_arguments(callback, leaves)
        host = self._hosts[callback.name]
        if callback.flavor == "debug":
            return self.table.debug(host, *args, ordered=callback.ordered, **kwargs)
        avals = [jax.ShapeDtypeStruct(*self.program.aval(leaf)) for leaf in callback.results]
        declared = nested_answer(callback, tuple(avals))
        if callback.flavor == "pure":
            return self.table.pure(host, declared, *args, vmap_method=callback.method, **kwargs)
        return self.table.io(host, declared, *args, ordered=callback.ordered, **kwargs)

    def _nest_jit(self, nest: Nest, state: State) -> State:
        inner = jax.jit(functools.partial(self.run, nest.blocks[0]))
        return inner(inner(state)) if nest.variant else inner(state)

    def _nest_vmap(self, nest: Nest, state: State) -> State:
        ins = dict(zip(LEAVES, nest.in_axes, strict=True))
        outs = dict(zip(LEAVES, nest.out_axes, strict=True))
        lanes = {leaf: _spread(state[leaf], nest.size, axis) for leaf, axis in ins.items()}
        mapped = jax.vmap(functools.partial(self.run, nest.blocks[0]), (ins,), outs)(lanes)
        self._keep(mapped)
        return {leaf: _gathered(mapped[leaf], axis) for leaf, axis in outs.items()}

    def _nest_scan(self, nest: Nest, state: State) -> State:
        def body(carry: State, i: Any) -> tuple[State, Any]:
            after = self.run(nest.blocks[0], _stirred(carry, i))
            return after, jax.lax.stop_gradient(after)

        indices = jnp.arange(nest.size, dtype=jnp.int32)
        last, seen = jax.lax.scan(body, state, indices, reverse=nest.variant)
        return {leaf: _added(last[leaf], _gathered(seen[leaf], 0)) for leaf in LEAVES}

    def _nest_fori(self, nest: Nest, state: State) -> State:
        state = _stopped(state) if nest.stopped else state
        trips = jnp.sum(state["n"]) % 4 if nest.dynamic else nest.size
        return jax.lax.fori_loop(
            0, trips, lambda i, carry: self.run(nest.blocks[0], _stirred(carry, i)), state
        )

    def _nest_while(self, nest: Nest, state: State) -> State:
        state = _stopped(state) if nest.stopped else state
        trips = jnp.sum(state["n"], dtype=jnp.int32) % 4 if nest.dynamic else nest.size

        def go_on(carry: tuple[Any, State]) -> Any:
            seen = self.run(nest.blocks[0], carry[1])
            return (carry[0] < trips) & (jnp.sum(seen["n"]) >= 0)

        def body(carry: tuple[Any, State]) -> tuple[Any, State]:
            i, inner = carry
            return i + 1, self.run(nest.blocks[1], _stirred(inner, i))

        return jax.lax.while_loop(go_on, body, (jnp.int32(0), state))[1]

    def _nest_cond(self, nest: Nest, state: State) -> State:
        chosen = jnp.sum(state["n"]) + nest.size if nest.dynamic else nest.size
        branches = [functools.partial(self.run, block) for block in nest.blocks]
        return jax.lax.cond(chosen % 2 == 0, *branches, state)

    def _nest_switch(self, nest: Nest, state: State) -> State:
        chosen = jnp.sum(state["n"]) + nest.size if nest.dynamic else nest.size
        branches = [functools.partial(self.run, block) for block in nest.blocks]
        return jax.lax.switch(chosen % 3, branches, state)

    def _nest_grad(self, nest: Nest, state: State) -> State:
        def loss(x: Any) -> tuple[Any, State]:
            after = self.run(nest.blocks[0], {**state, "x": x})
            return jnp.sum(after["x"] * 2), after

        slope, after = jax.grad(loss, has_aux=True)(state["x"])
        self._keep((slope, after))
        after = after if nest.variant else state
        return {**after, "x": (after["x"] + slope) % MODULUS}

    def _nest_jvp(self, nest: Nest, state: State) -> State:
        def function(x: Any) -> tuple[Any, State]:
            after = self.run(nest.blocks[0], {**state, "x": x})
            return after["x"], after

        x, slope, after = jax.jvp(
            function, (state["x"],), (jnp.ones_like(state["x"]),), has_aux=True
        )
        return {**after, "x": (x + slope) % MODULUS}

    def _nest_checkpoint(self, nest: Nest, state: State) -> State:
        policies = jax.checkpoint_policies
        policy = policies.everything_saveable if nest.variant else policies.nothing_saveable
        return jax.checkpoint(functools.partial(self.run, nest.blocks[0]), policy=policy)(state)


def _spread(x: Any, size: int, axis: int | None) -> Any:
    """Different values along a new axis."""
    if axis is None:
        return x
    lane = jnp.arange(size).reshape((size, *[1] * x.ndim)).astype(jnp.int32)
    return jnp.moveaxis(_stir(x[None], lane), 0, axis)


def _gathered(x: Any, axis: int | None) -> Any:
    """An axis summed up, with weights that tell its positions apart."""
    if axis is None:
        return x
    x = jnp.moveaxis(x, axis, 0)
    weights = (1 + jnp.arange(x.shape[0])).reshape((-1, *[1] * (x.ndim - 1)))
    if x.dtype == bool:
        return jnp.sum(x * weights, axis=0) % 2 == 1
    return jnp.sum(x * weights.astype(x.dtype), axis=0, dtype=x.dtype) % MODULUS


def _stir(x: Any, i: Any) -> Any:
    return x ^ (i % 2 == 1) if x.dtype == bool else (x + i.astype(x.dtype)) % MODULUS


def _stirred(state: State, i: Any) -> State:
    return {leaf: _stir(x, jnp.asarray(i)) for leaf, x in state.items()}


def _added(x: Any, y: Any) -> Any:
    return x ^ y if x.dtype == bool else (x + y) % MODULUS


def _stopped(state: State) -> State:
    return {leaf: jax.lax.stop_gradient(x) for leaf, x in state.items()}
