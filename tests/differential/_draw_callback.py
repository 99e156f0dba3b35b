"""Draw a random callback that suits the nests around it."""

from __future__ import annotations

import random
from typing import Any

from ._programs import AUTODIFF, FLAVORS, LEAVES, METHODS, Callback
from ._trees import drawn_inputs, drawn_tree

_LITERALS = (3.0, 3.0, 3, True)


def drawn_callback(r: random.Random, path: tuple) -> Callback:
    """Draw a callback that JAX usually accepts inside the nests of `path`."""
    kinds = {nest.kind for nest in path}
    differentiated = bool(kinds & set(AUTODIFF))
    flavor = r.choice(FLAVORS)
    if flavor == "io" and differentiated and "checkpoint" in kinds:
        flavor = r.choice(FLAVORS)  # JAX refuses most of these
    ruled = {"custom_jvp", "custom_vjp"} & kinds
    options: dict[str, Any] = {
        "args": _leaves(r),
        "results": _leaves(r) if flavor != "debug" else (),
        "literal": r.choice(_LITERALS) if _one_in(r, 4) else None,
        "declared": r.choice(("struct", "struct", "weak", "array")),
        "used": not _one_in(r, 4),
        "stopped": differentiated and flavor != "debug" and not _one_in(r, 2 if ruled else 10),
    }
    if flavor == "pure":
        options |= _pure_options(r, differentiated)
    else:
        options["ordered"] = _one_in(r, 2) and _may_be_ordered(r, flavor, kinds)
        options["tag"] = flavor == "debug" and _one_in(r, 2)
    if flavor == "io" and _one_in(r, 3):
        options["results"] = ()
    if not differentiated and "vmap" not in kinds and _one_in(r, 10):
        options["args"] = ()
    return Callback("", flavor, **options, **_trees(r, **options))


def _trees(
    r: random.Random, args: tuple, results: tuple, literal: Any, tag: bool = False, **options: Any
) -> dict[str, Any]:
    count = len(args) + (literal is not None) + tag
    return {
        "inputs": drawn_inputs(r, count) if _one_in(r, 2) else None,
        "outputs": drawn_tree(r, len(results)) if results or _one_in(r, 2) else None,
    }


def _one_in(r: random.Random, n: int) -> bool:
    return r.random() * n < 1


def _leaves(r: random.Random) -> tuple[str, ...]:
    return tuple(r.sample(LEAVES, r.randint(1, 3)))


def _pure_options(r: random.Random, differentiated: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"method": r.choice((*METHODS, "sequential"))}
    if _one_in(r, 12):
        options["method"] = None
    if options["method"] == "legacy_vectorized":
        # With several arguments, a host function cannot tell which of them have which batch axis.
        options["args"] = (r.choice(LEAVES),)
    if differentiated and _one_in(r, 2):
        options |= {"ruled": True, "stopped": False, "args": ("x",), "results": ("x",)}
        options["literal"] = None
    return options


def _may_be_ordered(r: random.Random, flavor: str, kinds: set[str]) -> bool:
    if "vmap" not in kinds:
        return True
    # With an ordered effect in the predicate of a vmapped while loop, JAX returns wrong numbers.
    return "while" not in kinds and (flavor == "debug" or _one_in(r, 10))
