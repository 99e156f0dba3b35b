"""Runs a program with a table of callbacks: JAX's or ours."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from . import _autodiff, _control
from ._arithmetic import State, added, numbers, reduced
from ._hosts import declared, result_leaves, returned
from ._programs import Callback, Program, sites
from ._trees import called_with

_KINDS = {**_control.KINDS, **_autodiff.KINDS}


class Table(NamedTuple):
    """The three functions that a program is run with."""

    pure: Callable[..., Any]
    io: Callable[..., Any]
    debug: Callable[..., Any]


class Interpreter:
    """One run of a program, which it is called with block by block.

    Attributes:
        calls: of host functions: name, structure, arguments.
        results: what the program got from its callbacks: name, structure, avals.
    """

    def __init__(self, program: Program, table: Table) -> None:
        self.program = program
        self.table = table
        self.calls: list[tuple] = []
        self.returned_values: set[tuple] = set()
        self.held: list[tuple[np.ndarray, bytes]] = []  # arguments, and what they were
        self.kept: list[Any] = []  # whatever was computed eagerly, to be waited for
        self._hosts = {callback.name: self._host(callback) for callback, _ in sites(program.block)}

    def start(self) -> State:
        """The state that the program is called with."""
        return numbers(self.program)

    def function(self) -> Callable[[State], State]:
        """The program as a function of its state."""
        run = functools.partial(self, self.program.block)
        return jax.jit(run) if self.program.jitted else run

    def __call__(self, block: tuple, state: State) -> State:
        """The steps of a block, one after the other."""
        for step in block:
            if isinstance(step, Callback):
                state = self._call(step, state)
            else:
                state = _KINDS[step.kind](self, step, state)
            self.keep(state)
        return state

    def keep(self, tree: Any) -> Any:
        """`tree`, to be waited for."""
        self.kept += [x for x in jax.tree.leaves(tree) if not isinstance(x, jax.core.Tracer)]
        return tree

    def _host(self, callback: Callback) -> Callable[..., Any]:
        def host(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = jax.tree.flatten((args, kwargs))
            facts = [x if isinstance(x, str) else self._seen(x) for x in leaves]
            self.calls.append((callback.name, str(tree), *facts))
            arrays = [np.asarray(x) for x in leaves if not isinstance(x, str)]
            if callback.flavor == "debug":
                return None
            return returned(callback, result_leaves(np, self.program, callback, arrays))

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
        leaves += [] if callback.literal is None else [callback.literal]
        results = self.keep(jax.tree.leaves(self._bind(callback, leaves)))
        if not callback.used:
            return state
        state = dict(state)
        for leaf, result in zip(callback.results, results, strict=True):
            # With a rule the tangent comes through the callback, otherwise around it.
            state[leaf] = reduced(result) if callback.ruled else added(state[leaf], result)
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
        args, kwargs = called_with(callback.inputs, leaves + ["tag"] * callback.tag)
        returned_value = self._bound(callback, args, kwargs)
        leaves, tree = jax.tree.flatten(returned_value)
        avals = [(x.shape, x.dtype.name, x.weak_type) for x in map(jax.typeof, leaves)]
        self.returned_values.add((callback.name, str(tree), *avals))
        return returned_value

    def _bound(self, callback: Callback, args: tuple, kwargs: dict[str, Any]) -> Any:
        host = self._hosts[callback.name]
        if callback.flavor == "debug":
            return self.table.debug(host, *args, ordered=callback.ordered, **kwargs)
        structs = declared(self.program, callback)
        if callback.flavor == "pure":
            return self.table.pure(host, structs, *args, vmap_method=callback.method, **kwargs)
        return self.table.io(host, structs, *args, ordered=callback.ordered, **kwargs)
