"""Find the call paths of a program: which lines are traced, and under which transformations."""

from __future__ import annotations

import dataclasses

from ._program import Function, Program, Statement

_FLAGS = {
    "differentiated": ("jax.grad", "value_and_grad", "jax.jvp", "jax.vjp", "linearize", "jacfwd"),
    "batched": ("jax.vmap",),
    "looped": ("lax.scan", "lax.map", "fori_loop", "while_loop"),
    "branched": ("lax.cond", "lax.switch"),
    "sharded": ("shard_map",),
    "remat": ("checkpoint",),
    "inner_jit": ("jax.jit",),
}


@dataclasses.dataclass(frozen=True)
class Path:
    """One call path to a bind."""

    host: str
    line: int  # the id of its `Statement`
    flags: frozenset[str]


def paths(program: Program) -> list[Path]:
    """Return every call path from the main function to a host function, except through rules."""
    helpers = {helper.name: helper for helper in program.helpers}
    found: list[Path] = []

    def visit(function: Function, flags: frozenset[str]) -> None:
        if function.decorator:
            flags |= {function.decorator}
        for statement in function.body:
            if statement.host:
                found.append(Path(statement.host, id(statement), flags | _flags(statement)))
            inner = flags | _flags(statement)
            for nested in statement.functions:
                visit(nested, inner | _predicate(statement, nested))
            for name in statement.calls:
                if name in helpers:
                    visit(helpers[name], inner)

    visit(program.main, frozenset())
    return found


def _predicate(statement: Statement, nested: Function) -> frozenset[str]:
    """Return "predicate" if `statement` is a while loop that calls `nested` in its predicate."""
    tests = statement.functions[1:]
    return frozenset(
        {"predicate"} if "while_loop" in statement.template and nested in tests else ()
    )


def _flags(statement: Statement) -> frozenset[str]:
    """Return the transformations in a line, also by their own names."""
    found = {(flag, word) for flag, words in _FLAGS.items() for word in words}
    return frozenset(
        name for flag, word in found if word in statement.template for name in (flag, word)
    )
