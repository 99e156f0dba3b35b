"""Small random JAX programs over callbacks, as plain values that print as they were written.

A program is a block of steps over a state of three arrays (``x`` floating, ``n`` integer, ``b``
boolean). Every step returns a state of the same shapes, so that steps nest and follow one another
in any way. Numbers stay small integers: float arithmetic is exact, whatever XLA does to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

LEAVES = ("x", "n", "b")
FLAVORS = ("pure", "io", "debug")
METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")
NESTS = ("jit", "vmap", "scan", "fori", "while", "cond", "switch", "grad", "jvp", "checkpoint")
LOOPS = ("scan", "fori", "while")


@dataclasses.dataclass(frozen=True)
class Callback:
    """One callback and what becomes of its results."""

    name: str  # of the host function
    flavor: str
    method: str | None = None  # vmap_method of pure
    ordered: bool = False
    args: tuple[str, ...] = ("x",)  # leaves of the state
    literal: bool = False  # a Python number follows the leaves
    style: str = "positional"  # or "tuple", "dict", "keywords": how arguments are nested
    tag: bool = False  # debug only: a string is among the arguments
    results: tuple[str, ...] = ("x",)  # leaves of the state that it answers with
    answer: str = "tuple"  # or "dict", "list", "leaf": how results are nested
    used: bool = True  # whether the results flow into the state
    stopped: bool = False  # the arguments go through stop_gradient
    ruled: bool = False  # wrapped in jax.custom_jvp


@dataclasses.dataclass(frozen=True)
class Nest:
    """One transformation or control flow over blocks."""

    kind: str
    blocks: tuple[tuple[Callback | Nest, ...], ...]  # while: predicate, body; cond: 2; switch: 3
    size: int = 0  # lanes, iterations, or the offset of the choice of branch
    in_axes: tuple[int | None, ...] = (0, 0, 0)
    out_axes: tuple[int | None, ...] = (0, 0, 0)
    dynamic: bool = False  # the trip count, predicate or index comes from the state
    variant: bool = False  # jit: called twice; scan: reverse; checkpoint: save everything;
    #                        grad: the differentiated function's own results are used too
    stopped: bool = False  # while and dynamic fori under grad: x goes through stop_gradient


@dataclasses.dataclass(frozen=True)
class Program:
    """Steps, and the state they start from."""

    block: tuple[Callback | Nest, ...]
    shapes: tuple[tuple[int, ...], ...] = ((), (), ())  # of x, n and b
    x64: bool = False
    wide: bool = False  # x and n have 64 bits (with x64 only)
    weak: bool = False  # a scalar x starts as a Python number
    jitted: bool = True

    def aval(self, leaf: str) -> tuple[tuple[int, ...], str]:
        """Shape and dtype of one leaf of the state, wherever in the program."""
        bits = "64" if self.wide and self.x64 else "32"
        dtype = {"x": f"float{bits}", "n": f"int{bits}", "b": "bool"}[leaf]
        return self.shapes[LEAVES.index(leaf)], dtype


def sites(block: tuple, path: tuple[Nest, ...] = ()) -> Iterator[tuple[Callback, tuple[Nest, ...]]]:
    """Every callback with the nests around it, outermost first."""
    for step in block:
        if isinstance(step, Callback):
            yield step, path
        else:
            for inner in step.blocks:
                yield from sites(inner, (*path, step))


def numbered(block: tuple, numbers: Iterator[int]) -> tuple:
    """The block with a name of its own for every callback."""
    return tuple(
        dataclasses.replace(step, name=f"h{next(numbers)}")
        if isinstance(step, Callback)
        else dataclasses.replace(
            step, blocks=tuple(numbered(inner, numbers) for inner in step.blocks)
        )
        for step in block
    )


def may_drop_io(program: Program) -> bool:
    """Whether JAX may drop an io callback that ours keeps: in a scan that is differentiated."""
    for callback, path in sites(program.block):
        kinds = [nest.kind for nest in path]
        if callback.flavor == "io" and "grad" in kinds:
            if {"scan", "fori"} & set(kinds[kinds.index("grad") :]):
                return True
    return False


def is_one_sequence(program: Program) -> bool:
    """Whether even unordered calls come in one order that JAX defines."""
    found = list(sites(program.block))
    if len(found) != 1 or not program.jitted or may_drop_io(program):
        return False
    ((callback, path),) = found
    kinds = [nest.kind for nest in path]
    free = callback.flavor == "debug" or callback.method == "sequential_unrolled"
    called_twice = any(nest.kind == "jit" and nest.variant for nest in path)
    return not (free and "vmap" in kinds) and not called_twice and "checkpoint" not in kinds
