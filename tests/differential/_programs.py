"""Small JAX programs with callbacks, as dataclasses whose repr is the code that builds them.

A program is a block of steps over a state of three arrays (``x`` inexact, ``n`` integer, ``b``
boolean). Every step returns a state of the same shapes, so steps can be nested and combined in any
order. Numbers stay small integers, see `_arithmetic`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

LEAVES = ("x", "n", "b")
FLAVORS = ("pure", "io", "debug")
METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")
LOOPS = ("scan", "fori", "while")
REVERSE = ("grad", "vjp", "linearize")  # JAX partially evaluates the program
AUTODIFF = (*REVERSE, "jvp")
PARTS = {  # kind of nest: names of its blocks
    "jit": ("jit",),
    "vmap": ("vmap",),
    "scan": ("scan",),
    "fori": ("fori",),
    "while": ("while predicate", "while body"),
    "cond": ("cond", "cond"),
    "switch": ("switch", "switch", "switch"),
    "grad": ("grad",),
    "vjp": ("vjp",),
    "jvp": ("jvp",),
    "linearize": ("linearize",),
    "custom_jvp": ("custom_jvp primal", "custom_jvp rule"),
    "custom_vjp": ("custom_vjp primal", "custom_vjp forward", "custom_vjp backward"),
    "checkpoint": ("checkpoint",),
}
NESTS = tuple(PARTS)
_WITHOUT_X64 = {
    "float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"
}  # fmt: skip


class _ShortRepr:
    """A dataclass whose repr leaves out fields with their default values."""

    def __repr__(self) -> str:
        fields = dataclasses.fields(self)  # type: ignore[arg-type]
        values = [(f.name, getattr(self, f.name)) for f in fields]
        shown = [f"{k}={v!r}" for (k, v), f in zip(values, fields, strict=True) if v != f.default]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclasses.dataclass(frozen=True, repr=False)
class Callback(_ShortRepr):
    """A call of a callback, and how its results are used."""

    name: str  # of the host function
    flavor: str
    method: str | None = None  # vmap_method of pure
    ordered: bool = False
    args: tuple[str, ...] = ("x",)  # leaves of the state
    literal: Any = None  # a Python number that follows the leaves
    tag: bool = False  # debug only: a string is among the arguments
    inputs: Any = None  # (args, kwargs) as a pytree of zeros; None: positional
    results: tuple[str, ...] = ("x",)  # leaves of the state whose shapes and dtypes it returns
    outputs: Any = None  # the result as a pytree of zeros; None: a tuple, or nothing
    declared: str = "struct"  # how the results are declared; or "weak", "array"
    used: bool = True  # whether the results flow into the state
    stopped: bool = False  # the arguments go through stop_gradient
    ruled: bool = False  # wrapped in jax.custom_jvp


@dataclasses.dataclass(frozen=True, repr=False)
class Nest(_ShortRepr):
    """A transformation or control-flow primitive around blocks."""

    kind: str
    blocks: tuple[tuple[Callback | Nest, ...], ...]  # one for each name in PARTS
    size: int = 0  # number of batch elements or iterations, or offset of the branch index
    in_axes: tuple[int | None, ...] = (0, 0, 0)
    out_axes: tuple[int | None, ...] = (0, 0, 0)
    dynamic: bool = False  # the trip count, predicate or index comes from the state
    variant: bool = False  # jit, vjp, linearize: called twice; scan: reverse;
    #                        grad: the differentiated function's own results are used too;
    #                        custom_vjp: residuals come from the results; checkpoint: prevent_cse
    stopped: bool = False  # while and dynamic fori under grad: x goes through stop_gradient
    policy: str | None = None  # checkpoint only


@dataclasses.dataclass(frozen=True, repr=False)
class Program(_ShortRepr):
    """Steps, and the initial state."""

    block: tuple[Callback | Nest, ...]
    shapes: tuple[tuple[int, ...], ...] = ((), (), ())  # of x, n and b
    dtypes: tuple[str, str, str] = ("float32", "int32", "bool")
    x64: bool = False
    weak: bool = False  # scalars start as weakly typed Python numbers if their dtype allows
    jitted: bool = True

    def aval(self, leaf: str) -> tuple[tuple[int, ...], str]:
        """Return the shape and dtype of a leaf of the state, the same everywhere in the program."""
        index = LEAVES.index(leaf)
        dtype = self.dtypes[index]
        return self.shapes[index], dtype if self.x64 else _WITHOUT_X64.get(dtype, dtype)


def sites(block: tuple, path: tuple[Nest, ...] = ()) -> Iterator[tuple[Callback, tuple[Nest, ...]]]:
    """Yield every callback with the nests around it, outermost first."""
    for step in block:
        if isinstance(step, Callback):
            yield step, path
        else:
            for inner in step.blocks:
                yield from sites(inner, (*path, step))


def parts(block: tuple, path: tuple[str, ...] = ()) -> Iterator[tuple[Callback, tuple[str, ...]]]:
    """Yield every callback with the names of the blocks around it, outermost first."""
    for step in block:
        if isinstance(step, Callback):
            yield step, path
        else:
            for name, inner in zip(PARTS[step.kind], step.blocks, strict=True):
                yield from parts(inner, (*path, name))


def numbered(block: tuple, numbers: Iterator[int]) -> tuple:
    """Return the block with a unique name for every callback."""
    return tuple(
        dataclasses.replace(step, name=f"h{next(numbers)}")
        if isinstance(step, Callback)
        else dataclasses.replace(
            step, blocks=tuple(numbered(inner, numbers) for inner in step.blocks)
        )
        for step in block
    )


def may_drop_io(program: Program) -> bool:
    """Return whether JAX may drop an io callback that ours keeps, in a differentiated loop.

    JAX also turns vmap into a loop, and drops the callback if that loop is in a custom_jvp rule.
    """
    for callback, path in sites(program.block):
        kinds = [nest.kind for nest in path]
        split = min((kinds.index(kind) for kind in REVERSE if kind in kinds), default=len(kinds))
        inside = set(kinds[split:])
        if callback.flavor == "io" and (
            {"scan", "fori"} & inside or {"vmap", "custom_jvp"} <= inside
        ):
            return True
    return False


def forward(block: tuple) -> tuple:
    """Return the block with jvp in place of the innermost derivatives in which JAX drops io."""
    return tuple(step if isinstance(step, Callback) else _forward(step) for step in block)


def _forward(nest: Nest) -> Nest:
    paths = [path for inner in nest.blocks for _, path in sites(inner)]
    innermost = not any(around.kind in REVERSE for path in paths for around in path)
    return dataclasses.replace(
        nest,
        kind="jvp" if nest.kind in REVERSE and innermost else nest.kind,
        blocks=tuple(map(forward, nest.blocks)),
    )


def may_share_calls(program: Program) -> set[str]:
    """Return the callbacks with empty arguments, which XLA may call once for several elements."""
    return {
        callback.name
        for callback, path in sites(program.block)
        if callback.method in ("sequential", "sequential_unrolled")
        and "vmap" in [nest.kind for nest in path]
        and any(0 in program.aval(leaf)[0] for leaf in callback.args)
    }


def is_one_sequence(program: Program) -> bool:
    """Return whether JAX defines the order of all calls, even unordered ones."""
    found = list(sites(program.block))
    if len(found) != 1 or not program.jitted:
        return False
    if may_drop_io(program) or may_share_calls(program):
        return False
    ((callback, path),) = found
    kinds = [nest.kind for nest in path]
    free = callback.flavor == "debug" or callback.method == "sequential_unrolled"
    called_twice = any(n.kind in ("jit", "vjp", "linearize") and n.variant for n in path)
    return not (free and "vmap" in kinds) and not called_twice and "checkpoint" not in kinds
