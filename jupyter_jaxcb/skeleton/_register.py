"""The decorators, and ``with record()``."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .. import jax_compat
from . import _elision
from ._bind import bind
from ._dispatch import name_of
from ._recording import CAPACITY, Recorder, Recording, activate, active


class Callback:
    """A host function that JAX programs can call.

    Args:
        flavor: a key of `_bind.FLAVORS`.
        function: the host function: NumPy arrays in, what `result` declares out.
        result: the name of the parameter that the result is like, or a pytree of shapes and dtypes.
        vmap_method: how ``vmap`` passes a batch; here only ``"sequential"``.
    """

    def __init__(
        self, flavor: str, function: Callable[..., Any], result: Any, vmap_method: str
    ) -> None:
        names = list(inspect.signature(function).parameters)
        is_name = isinstance(result, str) and result in names
        leaves = jax.tree.leaves(result)
        if result is None or not (is_name or all(hasattr(x, "shape") for x in leaves)):
            raise ValueError(
                f"result={result!r} of {name_of(function)} is neither the name of a parameter "
                f"({', '.join(map(repr, names))}) nor a pytree of jax.ShapeDtypeStruct."
            )
        if vmap_method != "sequential":
            raise ValueError(f"unknown vmap method {vmap_method!r}. Pass 'sequential'.")
        self._flavor, self._function, self._vmap_method = flavor, function, vmap_method
        self._like = names.index(result) if is_name else None
        self._result = result
        self._rule: Any = None
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any) -> Any:
        """Call the host function, from JAX code."""
        __tracebackhide__ = True
        return self._bind(*args) if self._rule is None else self._rule(*args)

    def _bind(self, *args: Any) -> Any:
        __tracebackhide__ = True
        result = self._result
        if self._like is not None:
            if self._like >= len(args):
                raise TypeError(
                    f"{name_of(self._function)} needs its argument {result!r}: pass it."
                )
            result = jax.tree.map(jnp.asarray, args[self._like])
        return bind(self._flavor, self._function, self._vmap_method, result, args)

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the derivative: ``rule(primals, tangents)``, as for `jax.custom_jvp`."""
        self._rule = jax.custom_jvp(self._bind)
        self._rule.defjvp(rule)
        return rule


def _decorator(flavor: str, result: Any = None) -> Callable[..., Any]:
    def register(
        function: Callable[..., Any] | None = None,
        *,
        result: Any = result,
        vmap_method: str = "sequential",
    ) -> Any:
        if function is None:
            return functools.partial(register, result=result, vmap_method=vmap_method)
        return Callback(flavor, function, result, vmap_method)

    return register


pure, io, debug = _decorator("pure"), _decorator("io"), _decorator("debug", result=())


class record:
    """Record what happens in a block: ``with record() as r``, then ``r.recording``.

    One block at a time. The rooms that grow from here share one recorder, of which blocks are
    windows.
    """

    recording: Recording

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._recorder = Recorder(capacity=capacity)
        self._changes = jax_compat.Changes()

    def __enter__(self) -> record:
        if active() is not None:
            raise RuntimeError("another block is being recorded. End it first.")
        activate(self._recorder)
        jax_compat.watch(_elision.Watcher(self._recorder), self._changes)
        return self

    def __exit__(self, *_: Any) -> None:
        try:
            jax.effects_barrier()
        finally:
            self._changes.revert()
            activate(None)
            self.recording = self._recorder.freeze(_elision.after_runs)
