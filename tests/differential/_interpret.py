"""Run a program with JAX's callbacks or with ours."""

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
    """The three callback functions with which a program runs."""

    pure: Callable[..., Any]
    io: Callable[..., Any]
    debug: Callable[..., Any]


class Interpreter:
    """Runs a program, block by block, and records its host calls.

    Attributes:
        calls: name, structure and arguments of every host call.
        returned_values: name, structure and avals of what callbacks returned to the program.
    """

    def __init__(self, program: Program, table: Table) -> None:
        self.program = program
        self.table = table
        self.calls: list[tuple] = []
        self.returned_values: set[tuple] = set()
        self.held: list[tuple[np.ndarray, bytes]] = []  # host arguments, and their original bytes
        self.kept: list[Any] = []  # arrays computed eagerly, to wait for
        self._hosts = {callback.name: self._host(callback) for callback, _ in sites(program.block)}

    def start(self) -> State:
        """Return the state that the program is called with."""
        return numbers(self.program)

    def function(self) -> Callable[[State], State]:
        """Return the program as a function of its state."""
        run = functools.partial(self, self.program.block)
        return jax.jit(run) if self.program.jitted else run

    def __call__(self, block: tuple, state: State) -> State:
        """Run the steps of a block one after the other."""
        for step in block:
            if isinstance(step, Callback):
                state = self._call(step, state)
            else:
                state = _KINDS[step.kind](self, step, state)
            self.keep(state)
        return state

    def keep(self, tree: Any) -> Any:
        """Remember the arrays of `tree`, to wait for them later, and return `tree`."""
        self.kept += [x for x in jax.tree.leaves(tree) if not isinstance(x, jax.core.Tracer)]
        return tree

    def _host(self, callback: Callback) -> Callable[..., Any]:
        def host(*args: Any, **kwargs: Any) -> Any:
            leaves, tree = jax.tree.flatten((args, kwargs))
            facts = [x if isinstance(x, str) else self._argument_facts(x) for x in leaves]
            self.calls.append((callback.name, str(tree), *facts))
            arrays = [np.asarray(x) for x in leaves if not isinstance(x, str)]
            if callback.flavor == "debug":
                return None
            return returned(callback, result_leaves(np, self.program, callback, arrays))

        host.__name__ = host.__qualname__ = callback.name
        return host

    def _argument_facts(self, x: Any) -> tuple:
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
            # With a rule, the tangent passes through the callback; otherwise it bypasses it.
            state[leaf] = reduced(result) if callback.ruled else added(state[leaf], result)
        return state

    def _bind(self, callback: Callback, leaves: list[Any]) -> Any:
        if not callback.ruled:
            return self._bind_without_rule(callback, leaves)
        ruled = jax.custom_jvp(lambda x: jax.tree.leaves(self._bind_without_rule(callback, [x]))[0])

        @ruled.defjvp
        def _rule(primals: Any, tangents: Any) -> Any:
            return ruled(*primals), tangents[0]

        return ruled(*leaves)

    def _bind_without_rule(self, callback: Callback, leaves: list[Any]) -> Any:
        args, kwargs = called_with(callback.inputs, leaves + ["tag"] * callback.tag)
        returned_value = self._call_table(callback, args, kwargs)
        leaves, tree = jax.tree.flatten(returned_value)
        avals = [(x.shape, x.dtype.name, x.weak_type) for x in map(jax.typeof, leaves)]
        self.returned_values.add((callback.name, str(tree), *avals))
        return returned_value

    def _call_table(self, callback: Callback, args: tuple, kwargs: dict[str, Any]) -> Any:
        host = self._hosts[callback.name]
        if callback.flavor == "debug":
            return self.table.debug(host, *args, ordered=callback.ordered, **kwargs)
        structs = declared(self.program, callback)
        if callback.flavor == "pure":
            return self.table.pure(host, structs, *args, vmap_method=callback.method, **kwargs)
        return self.table.io(host, structs, *args, ordered=callback.ordered, **kwargs)
