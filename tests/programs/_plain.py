"""Run a program without JAX: loops over batch elements, dual numbers, plain calls.

This defines what a program means: its value, the host calls its text asks for, and their order.
A value knows which `vmap`s it depends on, so a call that is the same for every batch element
counts once.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.interface import VMAP_METHODS

from . import _leaves
from ._numbers import (
    NOTHING,
    Array,
    Dual,
    Number,
    arange,
    base,
    from_numpy,
    joined,
    level_of,
    minimum,
    number,
    over,
    sine,
    split,
    stop_gradient,
    taint_of,
    to_numpy,
    total,
    truth,
    where,
    with_taint,
)
from ._typed import has_empty


class Namespace:
    """A module-like object with the given attributes."""

    def __init__(self, **names: Any) -> None:
        self.__dict__.update(names)


class TypedHost:
    """A host function whose arguments are numbers that stand for arrays."""

    def __init__(self, name: str, plain: Plain) -> None:
        self.__name__, self.plain = name, plain
        self.typed = plain.hosts[name].typed

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        values = _leaves.arguments(args, {k: v for k, v in kwargs.items() if k.startswith("k")})
        return self._call(values)

    def where(self, mask: Any, *args: Any, otherwise: Any = None, **kwargs: Any) -> Any:
        values = [*_leaves.arguments(args, kwargs), mask]
        taint = taint_of(values)
        if _leaves.leaf(np, "bool", (), to_numpy(mask)):
            result = self._call(values)
            return None if result is None else with_taint(result, taint)
        return self._summed([np.full(s, 3, jnp.dtype(d)) for d, s in self.typed.results], taint)

    def _call(self, values: list[Any]) -> Any:
        if has_empty(self.typed):
            self.plain.unsure.add(self.__name__)
        return self.plain.host(self.__name__, self._run, [number(value) for value in values])

    def _run(self, *numbers: Any) -> Any:
        typed = self.typed
        arrays = [
            _leaves.leaf(np, *kind, x) for kind, x in zip(typed.leaves, numbers, strict=False)
        ]
        literal = numbers[len(arrays) : len(typed.ranks)]
        structs = [jax.ShapeDtypeStruct(shape, dtype) for dtype, shape in typed.results]
        returned = _leaves.results(np, typed.ranks, structs, (*arrays, *literal), {})
        return self._summed(returned).value

    def _summed(self, returned: list[Any], taint: frozenset[int] = NOTHING) -> Number:
        return Number(sum(_leaves.real(np, array).sum() for array in returned), taint)


def made(
    dtype: str, shape: Any, x: Any, axis: int | None = None, size: int = 0, moving: bool = False
) -> Any:
    x = stop_gradient(x)
    if axis is None:
        return x
    return Array([x + float(element) for element in range(size)], taint_of(x))


def total_of_leaves(leaves: Any) -> Number:
    whole = number(total(leaves))
    return Number(0.125 * (base(whole).value % _leaves.MODULUS), taint_of(whole))


class Custom:
    """A function with a derivative rule."""

    def __init__(self, function: Any, plain: Plain) -> None:
        self.function, self.plain = function, plain
        self.__name__ = function.__name__

    def defjvp(self, rule: Any) -> None:
        self.rule = rule

    def defvjp(self, forward: Any, backward: Any) -> None:
        self.forward, self.backward = forward, backward
        self.rule = self._reverse

    def __call__(self, *values: Any) -> Any:
        level = max(level_of(value) for value in values)
        if level < 0:
            return self.function(*values)
        pairs = [split(value, level) for value in values]
        primals, tangents = zip(*pairs, strict=False)
        out, dots = self.rule(primals, tangents)
        if isinstance(out, tuple):
            return tuple(joined(level, o, d) for o, d in zip(out, dots, strict=False))
        return joined(level, out, dots)

    def _reverse(self, primals: Any, tangents: Any) -> Any:
        out, kept = self.forward(*primals)
        ones = lambda like, value: over(lambda _: Number(value), like)  # noqa: E731
        if isinstance(out, tuple):
            cotangents = [
                (ones(out[0], 1.0), ones(out[1], 0.0)),
                (ones(out[0], 0.0), ones(out[1], 1.0)),
            ]
            return out, tuple(self._along(self.backward(kept, c), tangents) for c in cotangents)
        return out, self._along(self.backward(kept, ones(out, 1.0)), tangents)

    def _along(self, slopes: Any, tangents: Any) -> Any:
        result: Any = 0.0
        for slope, tangent in zip(slopes, tangents, strict=False):
            result = over(lambda s, t: number(s) * t, slope, tangent) + result
        return result


class Plain:
    """An environment for one program: its `jax`, `jnp` and callback functions."""

    def __init__(self, file: str, devices: int = 1) -> None:
        self.file, self.devices = file, devices
        self.calls: list[tuple[str, Any, Any]] = []  # host function, key of the call, its values
        self.unsure: set[str] = set()  # host functions whose number of calls is not known exactly
        self.steps: list[int] = []  # the current step of each enclosing loop
        self.turns: list[int] = []  # the current step of each enclosing `while`
        self.repeated: set[str] = set()  # host functions called in later steps of a `while`
        self.elements: dict[int, int] = {}  # the current element of each enclosing vmap
        self.forced: list[frozenset[int]] = []  # taints of enclosing selects
        self.not_taken = 0  # number of enclosing branches that this batch element does not take
        self.doubt = 0  # number of enclosing derivatives and the like
        self.levels = itertools.count()
        self.vmaps: dict[Any, int] = {}
        self.hosts: dict[str, Any] = {}

    def names(self) -> dict[str, Any]:
        """Return the names that the program's text uses."""
        policies = Namespace(
            nothing_saveable=None, everything_saveable=None, dots_saveable=None,
            save_only_these_names=str, save_anything_except_these_names=str,
        )  # fmt: skip
        lax = Namespace(
            scan=self.scan, map=self.lax_map, fori_loop=self.fori_loop, cond=self.cond,
            switch=self.switch, while_loop=self.while_loop, stop_gradient=stop_gradient,
        )  # fmt: skip
        plain_jax = Namespace(
            lax=lax, jit=lambda f: f, checkpoint=lambda f, **_: f, vmap=self.vmap, grad=self.grad,
            value_and_grad=self.value_and_grad, jvp=self.jvp, vjp=self.vjp,
            linearize=self.linearize, jacfwd=self.grad, shard_map=self.shard_map,
            custom_jvp=lambda f: Custom(f, self), custom_vjp=lambda f: Custom(f, self),
            checkpoint_policies=policies,
        )  # fmt: skip
        plain_jnp = Namespace(
            sum=total, sin=sine, ones_like=lambda x: Number(1.0), minimum=minimum,
            where=where, int32=lambda x: x, asarray=lambda x: x,
        )  # fmt: skip
        calls = {
            "pure_callback": self.drop_in, "io_callback": self.drop_in,
            "debug_callback": lambda host, *values, **named: (
                self.drop_in(host, None, *values, **named)
            ),
            "debug_print": lambda text, value, **_: self.host(text.split()[0], None, (value,)),
            "buffer_callback": lambda host, shape, *_, **__: (
                lambda *values: self.drop_in(host, shape, *values)
            ),
        }  # fmt: skip
        typed = {
            "Pair": _leaves.Pair, "RETURNED": None, "made": made, "total": total_of_leaves,
            "noted": lambda name, value, _: value, "others": lambda _: None, "arange": arange,
            "checkpoint_name": lambda value, _: value,
            "twice": lambda along, _: total(along(1.0)) + total(along(2.0)),
        }  # fmt: skip
        return {
            **typed, **calls, "jax": plain_jax, "jnp": plain_jnp, "np": np, "plain": self,
            "sum": total, "F32": None, "V0": None, "V3": None, "MESH": None, "P": lambda _: None,
        }  # fmt: skip

    # host functions

    def registered(self, name: str, function: Any) -> Any:
        def call(*values: Any) -> Any:
            return self.host(name, function, values)

        call.__name__ = name
        return Custom(call, self) if self.hosts[name].rule else call

    def typed(self, name: str) -> TypedHost:
        return TypedHost(name, self)

    def drop_in(self, host: Any, shape: Any, *values: Any, **named: Any) -> Any:
        if isinstance(host, TypedHost):
            return host(*values, **named)
        return self.host(host.__name__, host, values)

    def host(self, name: str, function: Any, values: Any) -> Any:
        spec = self.hosts[name]
        depends = spec.typed is None or spec.typed.leaves or spec.typed.masked  # on variables
        taint = taint_of(values).union(*(self.forced if depends else ()))
        arrays = [to_numpy(value) for value in values]
        method = VMAP_METHODS.get(spec.method or "")
        one_for_all = spec.flavor == "tap" or (method is not None and not method.looped)
        elements = (
            ()
            if one_for_all
            else tuple((v, self.elements[v]) for v in sorted(taint) if v in self.elements)
        )
        if self.doubt:
            self.unsure.add(name)
        if any(self.turns):
            self.repeated.add(name)
        empty = any(array.size == 0 for array in arrays)
        is_exact = spec.flavor == "io" or (spec.registered and spec.flavor != "tap")
        if self.not_taken and is_exact:
            pass  # only the batch elements that reach the call make it
        elif not (empty and spec.flavor in ("pure", "buffer") and not spec.side_effect):
            self.calls.append((name, (self.place(), tuple(self.steps), elements), arrays))
        if spec.flavor in ("debug", "print"):
            return None
        if spec.flavor == "tap":
            return values[0]
        results = function(*arrays)
        results = results if isinstance(results, tuple) else (results,)
        made = tuple(from_numpy(np.asarray(result), taint) for result in results)
        return made if spec.pair else made[0]

    def place(self) -> tuple[int, ...]:
        """Return the lines of the program that are running now."""
        frames, frame = [], sys._getframe(1)
        while frame is not None:
            if frame.f_code.co_filename == self.file:
                frames.append(frame.f_lineno)
            frame = frame.f_back
        return tuple(frames)

    # transformations

    def doubtful(self, function: Any, *values: Any) -> Any:
        self.doubt += 1
        try:
            return function(*values)
        finally:
            self.doubt -= 1

    def jvp(self, function: Any, primals: Any, tangents: Any) -> Any:
        level = next(self.levels)
        duals = [Dual(level, number(p), number(t)) for p, t in zip(primals, tangents, strict=False)]
        return split(self.doubtful(function, *duals), level)

    def value_and_grad(self, function: Any) -> Any:
        return lambda x: self.jvp(function, (x,), (1.0,))

    def grad(self, function: Any) -> Any:
        return lambda x: self.jvp(function, (x,), (1.0,))[1]

    def linearize(self, function: Any, x: Any) -> Any:
        value, slope = self.jvp(function, (x,), (1.0,))
        return value, lambda tangent: slope * tangent

    def vjp(self, function: Any, x: Any) -> Any:
        value, slope = self.jvp(function, (x,), (1.0,))
        return value, lambda cotangent: (slope * cotangent,)

    def vmap(
        self, function: Any, in_axes: Any = 0, out_axes: Any = 0, axis_size: int | None = None
    ) -> Any:
        def batched(*values: Any) -> Any:
            axes = in_axes if isinstance(in_axes, tuple) else (in_axes,) * len(values)
            over_axis = [
                value for value, axis in zip(values, axes, strict=False) if axis is not None
            ]
            size = len(over_axis[0].items) if over_axis else axis_size
            vmap = self.vmaps.setdefault(
                (self.place(), len(self.elements), *self.steps), len(self.vmaps)
            )
            results = []
            phantom = size == 0
            for element in range(size or 1):
                self.elements[vmap] = element
                arguments = [
                    value
                    if axis is None
                    else with_taint(
                        Number(0.0, taint_of(value)) if phantom else value[element],
                        frozenset({vmap}),
                    )
                    for value, axis in zip(values, axes, strict=False)
                ]
                called = len(self.calls)
                results.append(function(*arguments))
                if phantom:
                    self.unsure |= {name for name, _, _ in self.calls[called:]}
            del self.elements[vmap]
            return Array([], taint_of(results) - {vmap}) if phantom else Array(results)

        return batched

    def shard_map(self, function: Any, **_: Any) -> Any:
        def sharded(value: Array) -> Array:
            results = []
            for device in range(len(value.items)):
                self.steps.append(device)
                results += function(Array([value[device]])).items
                self.steps.pop()
            return Array(results)

        return sharded

    # loops and branches

    def scan(self, body: Any, carry: Any, xs: Array, reverse: bool = False, unroll: int = 1) -> Any:
        order = range(len(xs.items))
        before, called, ys = taint_of(carry), len(self.calls), {}
        empty: frozenset[int] = NOTHING  # taint of the stacked results of zero steps
        for i in reversed(order) if reverse else order:
            self.steps.append(i)
            carry, ys[i] = body(carry, xs[i])
            carry = with_taint(carry, before)  # once batched, always batched
            self.steps.pop()
        if self.elements and not ys:
            x = with_taint(Number(0.0), taint_of(xs))
            empty = self.taint_after(lambda: body(carry, x)[1])
            carry = with_taint(carry, self.taint_after(lambda: body(carry, x)[0]))
        if self.open_vmaps(taint_of(carry)) != self.open_vmaps(before):
            self.unsure |= {name for name, _, _ in self.calls[called:]}
        made = [ys[i] for i in order]
        return carry, None if made and made[0] is None else Array(made, empty)

    def open_vmaps(self, taint: frozenset[int]) -> frozenset[int]:
        """Return the vmaps in `taint` that are still running."""
        return taint & self.elements.keys()

    def taint_after(self, step: Any) -> frozenset[int]:
        """Return what the result of a loop that is not entered depends on; forget its calls."""
        called, unsure, repeated = len(self.calls), set(self.unsure), set(self.repeated)
        taint = taint_of(step())
        del self.calls[called:]
        self.unsure, self.repeated = unsure, repeated
        return taint

    def lax_map(self, function: Any, xs: Array) -> Array:
        return self.scan(lambda _, x: (0.0, function(x)), Number(0.0), xs)[1] or Array([])

    def fori_loop(self, low: int, high: int, body: Any, carry: Any) -> Any:
        return self.scan(lambda c, _: (body(0, c), None), carry, arange(high - low))[0]

    def while_loop(self, test: Any, body: Any, carry: Any) -> Any:
        before, called, step = taint_of(carry), len(self.calls), 0
        tainted: frozenset[int] = NOTHING
        while True:
            self.steps.append(step)
            # JAX may make the first test before the loop, so only the third test is a repetition.
            self.turns.append(max(step - 1, 0))
            go = truth(test(carry))
            tainted |= go.taint
            self.turns[-1] = step
            if go.value:
                carry = body(carry)
            self.turns.pop()
            self.steps.pop()
            step += 1
            if not go.value:
                break
        if self.elements and step == 1:
            carry = with_taint(carry, self.taint_after(lambda: body(carry)))
        if self.open_vmaps(tainted) or self.open_vmaps(taint_of(carry)) != self.open_vmaps(before):
            self.unsure |= {name for name, _, _ in self.calls[called:]}
        return with_taint(carry, tainted | before)

    def cond(self, test: Any, yes: Any, no: Any, value: Any) -> Any:
        return self.choose(truth(test), int(truth(test).value), (no, yes), value)

    def switch(self, index: Any, branches: Any, value: Any) -> Any:
        chosen = min(max(int(base(index).value), 0), len(branches) - 1)
        return self.choose(index, chosen, branches, value)

    def choose(self, test: Any, chosen: int, branches: Any, value: Any) -> Any:
        taint = taint_of(test)
        if not self.open_vmaps(taint):
            result = branches[chosen](value)
            if self.elements:  # if one branch returns a batched result, all branches do
                taint |= self.taint_after(lambda: [branch(value) for branch in branches])
            return with_taint(result, taint)
        self.forced.append(taint)
        results = []
        for place, branch in enumerate(branches):  # the same function may be several branches
            self.steps.append(place)
            self.not_taken += place != chosen
            results.append(branch(with_taint(value, taint)))
            self.not_taken -= place != chosen
            self.steps.pop()
        self.forced.pop()
        return with_taint(results[chosen], taint)
