"""Draw host functions with arrays of all dtypes and shapes in pytrees, masks and vmapped axes."""

from __future__ import annotations

import random

from tests.interface import VMAP_METHODS

from ._program import TOGETHER, Host, Statement, Typed

DTYPES = {
    "float32": 3, "float64": 3, "float16": 1, "bfloat16": 1, "complex64": 1, "complex128": 1,
    "int32": 2, "int64": 2, "int8": 1, "uint8": 1, "int16": 1, "uint16": 1, "uint32": 1,
    "uint64": 1, "bool": 3,
}  # fmt: skip
WITHOUT_X64 = {
    "float64": "float32", "complex128": "complex64", "int64": "int32", "uint64": "uint32"
}  # fmt: skip
METHODS = tuple(VMAP_METHODS)
LITERALS = ("3.0", "3", "True", "jnp.asarray(3.0)", "jnp.asarray(3)")


class DrawTyped:
    """Draw typed host functions and the lines that call them, for programs with or without x64."""

    def __init__(self, source: random.Random, x64: bool) -> None:
        self.random, self.x64 = source, x64

    def one_in(self, number: int) -> bool:
        return self.random.random() * number < 1

    def host(self, name: str, *, batched: bool, pure: bool, looped: bool) -> Host:
        """Draw a host function that JAX usually accepts in this context."""
        flavor = self.random.choice(("pure", "pure", "debug") if pure else ("pure", "io", "debug"))
        host = Host(name, flavor, self.one_in(2))
        least = 0 if self.one_in(8) else 1
        leaves = tuple(self.leaf() for _ in range(self.random.randint(least, 3)))
        results = () if flavor == "debug" else tuple(self.leaf() for _ in range(self.count(flavor)))
        literal = self.random.choice(LITERALS) if self.one_in(4) else ""
        if flavor == "pure":
            host.method = None if self.one_in(15) else self.random.choice((*METHODS, "sequential"))
            method = VMAP_METHODS.get(host.method or "")
            if method and method.hides_axes:  # it cannot tell which of several are batched
                leaves, literal = (leaves or (self.leaf(),))[:1], ""
        else:
            unbatched = not batched or (flavor == "debug" and not looped)
            host.ordered = self.one_in(2) and (unbatched or self.one_in(6))
        masked = self.one_in(4) and (host.method is None or VMAP_METHODS[host.method].looped)
        host.registered |= masked
        host.queued = flavor == "debug" and self.one_in(3)
        host.typed = Typed(
            leaves, results, self.results(flavor, len(results)), literal,
            "tag" if flavor == "debug" and self.one_in(2) else "",
            self.random.choice(("struct", "struct", "weak", "array")), masked,
        )  # fmt: skip
        return host

    def batch_host(self, name: str, *, pure: bool) -> Host:
        """Draw an io or debug callback that gets all batch elements in one call."""
        while True:
            host = self.host(name, batched=True, pure=pure, looped=True)
            # One that gets only a mask could not know of the batch axes of its result.
            if host.flavor != "pure" and host.typed and host.typed.ranks:
                host.ordered, host.method = False, self.random.choice(TOGETHER)
                return host

    def results(self, flavor: str, count: int) -> str:
        return "None" if flavor == "debug" else self.tree([f"r[{n}]" for n in range(count)])

    def count(self, flavor: str) -> int:
        return 0 if flavor == "io" and self.one_in(3) else self.random.randint(1, 3)

    def leaf(self) -> tuple[str, tuple[int, ...]]:
        (dtype,) = self.random.choices(list(DTYPES), list(DTYPES.values()))
        rank = self.random.choice((0, 0, 1, 1, 2, 3))
        shape = tuple(self.random.choice((1, 2, 3, 2, 3, 2, 3, 0)) for _ in range(rank))
        return dtype if self.x64 else WITHOUT_X64.get(dtype, dtype), shape

    # calls

    def call(self, host: Host, target: str, names: tuple[str, ...], moving: bool) -> Statement:
        """Draw a line that calls `host`, sometimes under a vmap of its own."""
        typed = host.typed
        assert typed
        leaves = [*typed.leaves, *[("bool", ())] * typed.masked]
        axes = [self.axis(shape) for _, shape in leaves]
        may_batch = not host.ordered or host.flavor == "debug"
        if not any(axis is not None for axis in axes) or self.one_in(2) or not may_batch:
            axes = [None] * len(leaves)
        size = self.random.choice((1, 2, 2, 3, 3, 0))
        batched = any(axis is not None for axis in axes)
        made = []
        for number, ((dtype, shape), axis) in enumerate(zip(leaves, axes, strict=True)):
            along = f", {axis}, {size}" if axis is not None else ""
            along += ", moving=True" * (moving or host.flavor == "debug")
            made.append(f'made("{dtype}", {shape}, ${number % 2}{along})')
        parameters = [f"a{number}" for number in range(len(leaves))] if batched else made
        text = self.text(host, parameters)
        if host.flavor != "debug" and typed.results:
            text = f'noted("{host.name}", {text}, RETURNED)'
        if batched:
            ins = ", ".join(map(str, axes))
            outs = [self.random.randint(-1, len(shape)) for _, shape in typed.results] or 0
            text = f"jax.vmap(lambda {', '.join(parameters)}: {text}, ({ins},), {outs})"
            text += f"({', '.join(made)})"
        if not typed.results:
            return Statement(text, (), names, host=host.name)
        targets = () if self.one_in(6) else (target,)
        return Statement(f"total({text})", targets, names, host=host.name)

    def axis(self, shape: tuple[int, ...]) -> int | None:
        return self.random.choice((None, *range(len(shape) + 1), 0, -1))

    def text(self, host: Host, leaves: list[str]) -> str:
        typed = host.typed
        assert typed
        leaves = [*leaves]
        mask = leaves.pop() if typed.masked else ""
        leaves += [typed.literal] * bool(typed.literal) + [f'"{typed.tag}"'] * bool(typed.tag)
        inside = [self.tree(part, 2) for part in self.shares(leaves)] if self.one_in(2) else leaves
        named = self.random.randint(0, len(inside)) if self.one_in(2) else 0
        first = len(inside) - named
        inside = [*inside[:first], *(f"k{n}={tree}" for n, tree in enumerate(inside[first:]))]
        if typed.masked:
            inside = [mask, *inside]
            if typed.tree != "None":
                inside.append(f"otherwise=others(D_{host.name})")
        elif not host.registered:
            declared = [] if host.flavor == "debug" else [f"D_{host.name}"]
            inside = [host.name, *declared, *inside, host.options()]
            return f"{host.flavor}_callback({', '.join(inside)})"
        return f"{host.name}{'.where' * typed.masked}({', '.join(inside)})"

    # pytrees, as text

    def tree(self, leaves: list[str], depth: int = 3) -> str:
        """Draw a tree with these leaves, possibly with empty containers and None."""
        if len(leaves) == 1 and (depth == 0 or self.one_in(2)):
            return leaves[0]
        if not leaves and (depth == 0 or not self.one_in(4)):
            return "None"
        parts = leaves if depth == 0 else [self.tree(p, depth - 1) for p in self.shares(leaves)]
        kind = self.random.choice(("tuple", "list", "dict", "Pair"))
        if kind == "Pair" and len(parts) == 2:
            return f"Pair({parts[0]}, {parts[1]})"
        if kind == "dict":
            return "{" + ", ".join(f'"r{n}": {part}' for n, part in enumerate(parts)) + "}"
        inside = ", ".join(parts)
        return f"[{inside}]" if kind == "list" else f"({inside},)" if parts else "()"

    def shares(self, leaves: list[str]) -> list[list[str]]:
        cuts = sorted(self.random.randint(0, len(leaves)) for _ in range(self.random.randint(0, 2)))
        return [leaves[a:b] for a, b in zip([0, *cuts], [*cuts, len(leaves)], strict=True)]


def declaration(typed: Typed) -> str:
    """Return the text of the declared result."""
    structs = ", ".join(
        f"np.zeros({shape}, jnp.dtype({dtype!r}))"
        if typed.declared == "array"
        else f"jax.ShapeDtypeStruct({shape}, {dtype!r}, weak_type={typed.declared == 'weak'})"
        for dtype, shape in typed.results
    )
    return f"(lambda r: {typed.tree})([{structs}])"


def has_empty(typed: Typed | None) -> bool:
    """Return whether an array has size 0: XLA may then make fewer calls, or none."""
    return typed is not None and any(0 in shape for _, shape in (*typed.leaves, *typed.results))
