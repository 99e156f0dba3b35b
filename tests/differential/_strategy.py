"""Draw random programs: most are valid, and JAX refuses a few."""

from __future__ import annotations

import itertools
import random
from typing import Any

from hypothesis import strategies as st

from ._autodiff import POLICIES
from ._draw_callback import drawn_callback
from ._programs import (
    AUTODIFF,
    LEAVES,
    LOOPS,
    NESTS,
    PARTS,
    REVERSE,
    Callback,
    Nest,
    Program,
    numbered,
)

MAX_ELEMENTS = 10  # per callback, over all vmaps around it, because JAX unrolls debug callbacks
MAX_CALLBACKS = 4
_RULES = {"custom_jvp", "custom_vjp", "checkpoint"}  # have an effect only under a derivative
_FORWARD = {"jvp", "linearize"}  # cannot differentiate a custom_vjp
# Which block of these nests gets the nests and callbacks, by frequency.
_FULL = {"while": (0, 1, 1), "custom_jvp": (0, 1, 1), "custom_vjp": (0, 1, 1, 2, 2)}
DTYPES = (  # of x, n and b, by frequency
    ("float32", "float32", "float64", "float64", "float16", "bfloat16", "complex64", "complex128"),
    ("int32", "int32", "int64", "int64", "int8", "uint8", "int16", "uint16", "uint32", "uint64"),
    ("bool",),
)


def programs(kinds: tuple[str, ...] = NESTS) -> st.SearchStrategy[Program]:
    """Return a strategy for programs with nests of the given kinds.

    It draws a single integer, the seed. If hypothesis drew every choice, it would mostly vary
    earlier programs, and 200 of them would miss whole transformations. Because hypothesis cannot
    shrink a seed, `shrunk` shrinks the program.
    """
    return st.integers(0, 2**24 - 1).map(lambda seed: drawn(random.Random(seed), kinds))


def drawn(r: random.Random, kinds: tuple[str, ...] = NESTS) -> Program:
    """Draw a program with the random numbers of `r`."""
    depth = r.choice((1, 2, 2, 3, 3, 4))
    shapes = tuple(_shape(r) if depth < 3 else r.choice(((), (2,), (3, 1))) for _ in LEAVES)
    drawing = _Drawing(r, kinds, shapes)
    block: tuple = ()
    while not block:
        drawing.left = r.randint(1, MAX_CALLBACKS)
        block = drawing.block(depth, ())
    x, n, b = map(r.choice, DTYPES)
    return Program(
        block=numbered(block, itertools.count()),
        shapes=shapes,
        dtypes=(x, n, b),
        x64=_coin(r),
        weak=_rarely(r, 4),
        jitted=not _rarely(r, 6),
    )


class _Drawing:
    """A program being drawn.

    Attributes:
        left: the number of callbacks still to draw, in all blocks together.
    """

    def __init__(
        self, r: random.Random, kinds: tuple[str, ...], shapes: tuple[tuple[int, ...], ...]
    ) -> None:
        self.left = 0
        self._r = r
        self._kinds = kinds
        self._shapes = shapes

    def block(self, depth: int, path: tuple, kind: str | None = None) -> tuple:
        """Draw a block with a nest (of `kind`, if given) and callbacks before and after it."""
        r = self._r
        steps: list[Any] = [self._nest(depth, path, kind)] if depth else []
        while self.left > 0 and (not steps or _coin(r)):
            self.left -= 1
            steps.insert(r.randint(0, len(steps)), drawn_callback(r, path))
        return tuple(step for step in steps if isinstance(step, Callback) or any(step.blocks))

    def _nest(self, depth: int, path: tuple, kind: str | None) -> Nest:
        r = self._r
        around = {nest.kind for nest in path}
        kind, within = (kind, None) if kind else self._kind(around)
        nest = Nest(kind, (), **_options(r, kind, path, self._shapes))
        count = len(PARTS[kind])
        full = r.choice(_FULL.get(kind, range(count)))
        blocks: list[tuple] = [()] * count
        blocks[full] = self.block(depth - (within is None), (*path, nest), within)
        for other in range(count):
            if other != full and self.left > 0 and _coin(r):
                blocks[other] = self.block(0, (*path, nest))
        return Nest(kind, tuple(blocks), **_options_of(nest))

    def _kind(self, around: set[str]) -> tuple[str, str | None]:
        """Draw the kind of a nest, and the kind of the rule directly inside it, or None."""
        r, kinds = self._r, self._kinds
        kind = r.choice((*kinds, "vmap") if "vmap" in kinds else kinds)
        if kind == "custom_vjp" and around & _FORWARD and not _rarely(r):
            kind = "custom_jvp" if "custom_jvp" in kinds else r.choice(kinds)
        forward = _FORWARD if kind == "custom_vjp" else ()
        derivatives = [k for k in REVERSE if k in kinds and k not in forward]
        if kind in _RULES and derivatives and not around & set(AUTODIFF) and not _rarely(r, 4):
            return r.choice(derivatives), kind
        return kind, None


def _options_of(nest: Nest) -> dict[str, Any]:
    return {k: v for k, v in vars(nest).items() if k not in ("kind", "blocks")}


def _coin(r: random.Random) -> bool:
    return r.random() < 0.5


def _rarely(r: random.Random, one_in: int = 10) -> bool:
    return r.random() * one_in < 1


def _shape(r: random.Random) -> tuple[int, ...]:
    return tuple(r.choice((1, 2, 3, 2, 3, 1, 2, 3, 0)) for _ in range(r.randint(0, 3)))


def _options(r: random.Random, kind: str, path: tuple, shapes: tuple) -> dict[str, Any]:
    around = {nest.kind for nest in path}
    dynamic = _coin(r) and kind in ("fori", "while", "cond", "switch")
    options: dict[str, Any] = {"dynamic": dynamic, "variant": _coin(r)}
    if around & set(REVERSE) and (kind == "while" or (kind == "fori" and dynamic)):
        options["stopped"] = not _rarely(r, 3 if "linearize" in around else 10)
    if kind == "vmap":
        options |= _axes(r, path, shapes)
    elif kind in LOOPS:
        options["size"] = r.choice((1, 2, 3, 4, 0))
    elif kind in ("cond", "switch"):
        options["size"] = r.randint(0, 2)
    elif kind == "checkpoint":
        options["policy"] = r.choice(tuple(POLICIES))
    return options


def _axes(r: random.Random, path: tuple, shapes: tuple) -> dict[str, Any]:
    elements = 1
    for nest in path:
        elements *= max(nest.size, 1) if nest.kind == "vmap" else 1
    ins = [r.choice((None, *range(len(s) + 1), 0, -1)) for s in shapes]
    if all(axis is None for axis in ins):
        ins[r.randint(0, 2)] = 0
    outs = [r.randint(-1, len(s)) for s in shapes]
    for leaf, axis in enumerate(ins):
        if axis is None and _rarely(r, 4):
            outs[leaf] = None
    sizes = [n for n in (2, 2, 3, 3, 4, 5, 1, 0) if elements * n <= MAX_ELEMENTS]
    return {"size": r.choice(sizes), "in_axes": tuple(ins), "out_axes": tuple(outs)}
