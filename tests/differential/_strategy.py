"""How programs are drawn: mostly legal ones, with a few that JAX refuses."""

from __future__ import annotations

import itertools
import random
from typing import Any

from hypothesis import strategies as st

from ._programs import LEAVES, LOOPS, METHODS, NESTS, Callback, Nest, Program, numbered, sites

MAX_LANES = 10  # of all vmaps around one callback: JAX unrolls debug callbacks
MAX_CALLBACKS = 4
_BLOCKS = {"while": 2, "cond": 2, "switch": 3}


def programs(kinds: tuple[str, ...] = NESTS) -> st.SearchStrategy[Program]:
    """Programs whose nests are of the given kinds.

    One integer decides: programs drawn choice by choice come in clumps, as hypothesis varies the
    ones it has, and 200 of them miss whole transformations. `shrunk` does what that costs.
    """
    return st.integers(0, 2**24 - 1).map(lambda seed: drawn(random.Random(seed), kinds))


def drawn(r: random.Random, kinds: tuple[str, ...] = NESTS) -> Program:
    """The program that the numbers of `r` spell."""
    depth = r.choice((1, 2, 2, 3, 3, 4))
    shapes = tuple(_shape(r) if depth < 3 else r.choice(((), (2,), (3, 1))) for _ in LEAVES)
    block: tuple = ()
    while not block:
        block = _block(r, kinds, depth, (), shapes, [r.randint(1, MAX_CALLBACKS)])
    x64 = _coin(r)
    return Program(
        block=numbered(block, itertools.count()),
        shapes=shapes,
        x64=x64,
        wide=x64 and _coin(r),
        weak=_rarely(r, 4),
        jitted=not _rarely(r, 6),
    )


def _coin(r: random.Random) -> bool:
    return r.random() < 0.5


def _rarely(r: random.Random, one_in: int = 10) -> bool:
    return r.random() * one_in < 1


def _shape(r: random.Random) -> tuple[int, ...]:
    return tuple(r.choice((1, 2, 3, 2, 3, 1, 2, 3, 0)) for _ in range(r.randint(0, 3)))


def _leaves(r: random.Random) -> tuple[str, ...]:
    return tuple(r.sample(LEAVES, r.randint(1, 3)))


def _block(
    r: random.Random, kinds: Any, depth: int, path: tuple, shapes: tuple, left: list[int]
) -> tuple:
    """Steps until `left` (a count of callbacks, shared with the blocks around) runs out."""
    steps: list[Any] = []
    if depth:
        steps.append(_nest(r, kinds, depth, path, shapes, left))
    while left[0] > 0 and (not steps or _coin(r)):
        left[0] -= 1
        steps.insert(r.randint(0, len(steps)), _callback(r, path))
    return tuple(step for step in steps if isinstance(step, Callback) or any(step.blocks))


def _nest(
    r: random.Random, kinds: Any, depth: int, path: tuple, shapes: tuple, left: list[int]
) -> Nest:
    kind = r.choice((*kinds, *kinds, "vmap") if "vmap" in kinds else kinds)
    around = [nest.kind for nest in path]
    dynamic = _coin(r) and kind in ("fori", "while", "cond", "switch")
    options: dict[str, Any] = {
        "dynamic": dynamic,
        "variant": _coin(r),
        "stopped": "grad" in around
        and (kind == "while" or (kind == "fori" and dynamic))
        and not _rarely(r),
    }
    if kind == "vmap":
        options |= _axes(r, path, shapes)
    elif kind in LOOPS:
        options["size"] = r.choice((1, 2, 3, 4, 0))
    elif kind in ("cond", "switch"):
        options["size"] = r.randint(0, 2)
    nest = Nest(kind, (), **options)
    count = _BLOCKS.get(kind, 1)
    full = r.randint(0, count - 1) if kind != "while" else r.choice((1, 1, 0))
    blocks: list[tuple] = [()] * count
    blocks[full] = _block(r, kinds, depth - 1, (*path, nest), shapes, left)
    for other in range(count):
        if other != full and left[0] > 0 and _coin(r):
            blocks[other] = _block(r, kinds, 0, (*path, nest), shapes, left)
    return Nest(kind, tuple(blocks), **options)


def _axes(r: random.Random, path: tuple, shapes: tuple) -> dict[str, Any]:
    lanes = 1
    for nest in path:
        lanes *= max(nest.size, 1) if nest.kind == "vmap" else 1
    ins = [r.choice((None, *range(len(s) + 1), 0)) for s in shapes]
    if all(axis is None for axis in ins):
        ins[r.randint(0, 2)] = 0
    outs = [r.randint(0, len(s)) for s in shapes]
    for leaf, axis in enumerate(ins):
        if axis is None and _rarely(r, 4):
            outs[leaf] = None
    sizes = [n for n in (2, 2, 3, 3, 4, 5, 1, 0) if lanes * n <= MAX_LANES]
    return {"size": r.choice(sizes), "in_axes": tuple(ins), "out_axes": tuple(outs)}


def _callback(r: random.Random, path: tuple) -> Callback:
    flavor = r.choice(("pure", "io", "debug"))
    kinds = {nest.kind for nest in path}
    differentiated = bool(kinds & {"grad", "jvp"})
    options: dict[str, Any] = {
        "args": _leaves(r),
        "results": _leaves(r) if flavor != "debug" else (),
        "literal": _rarely(r, 4),
        "style": r.choice(("positional", "tuple", "dict", "keywords")),
        "answer": r.choice(("tuple", "dict", "list")),
        "used": not _rarely(r, 4),
        "stopped": differentiated and flavor != "debug" and not _rarely(r),
    }
    if flavor == "pure":
        options |= _pure_options(r, differentiated)
    else:
        options["ordered"] = _coin(r) and _may_be_ordered(r, flavor, path, kinds)
        options["tag"] = flavor == "debug" and _coin(r)
    if flavor == "io" and _rarely(r, 3):
        options["results"] = ()
    if not kinds & {"grad", "jvp", "vmap"} and _rarely(r):
        options["args"] = ()
    if len(options["results"]) == 1 and _coin(r):
        options["answer"] = "leaf"
    return Callback("", flavor, **options)


def _pure_options(r: random.Random, differentiated: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"method": r.choice((*METHODS, "sequential"))}
    if _rarely(r, 12):
        options["method"] = None
    if options["method"] == "legacy_vectorized":
        # With several arguments a host function cannot tell which batch axis is whose.
        options["args"] = (r.choice(LEAVES),)
    if differentiated and _coin(r):
        options |= {"ruled": True, "stopped": False, "args": ("x",), "results": ("x",)}
        options["literal"] = False
    return options


def _may_be_ordered(r: random.Random, flavor: str, path: tuple, kinds: set[str]) -> bool:
    if "vmap" not in kinds:
        return True
    # An ordered effect in the predicate of a vmapped while: JAX answers with wrong numbers.
    return "while" not in kinds and (flavor == "debug" or _rarely(r))


def combinations(program: Program) -> set[tuple[str, str]]:
    """(transformation, flavor) and (vmap, pure's method) of every callback."""
    found = set()
    for callback, path in sites(program.block):
        ordered = "ordered " * callback.ordered
        for nest in path:
            found.add((nest.kind, callback.flavor))
            if ordered:
                found.add((nest.kind, ordered + callback.flavor))
            if nest.kind == "vmap" and callback.flavor == "pure":
                found.add(("vmap", f"pure {callback.method}"))
    return found
