"""A random program as a value.

Every variable holds a float32 scalar, so any statement can follow any other. Deleting a statement
leaves the rest of the program valid: a name that is not defined where it is used is written as the
first parameter of the enclosing function.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass
class Host:
    """A host function and how it is registered."""

    name: str
    flavor: str  # "pure", "io", "debug", "print", "buffer" or "tap"
    registered: bool  # with a decorator, or else called through a function with JAX's signature
    arity: int = 1
    ordered: bool = False
    method: str | None = None  # vmap_method
    math: int = 0  # index of the formula
    rule: str = ""  # "jvp", "vjp" or none
    factor: str = ""  # the host function that its rule calls
    pair: bool = False  # returns two results
    side_effect: bool = False  # has_side_effect of a buffer callback


@dataclasses.dataclass
class Statement:
    """One line of a function, and the functions defined before it."""

    template: str  # "$0", "$1" are arguments; "$f", "$g", "$h" functions
    targets: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    functions: tuple[Function, ...] = ()
    calls: tuple[str, ...] = ()  # names of helpers and host functions in the template
    host: str = ""  # the host function that this line binds


@dataclasses.dataclass
class Function:
    """A function of scalars."""

    name: str
    parameters: tuple[str, ...]
    body: list[Statement]
    result: tuple[str, ...]  # variables whose weighted sum it returns
    decorator: str = ""  # "jit", "checkpoint", "custom_jvp", "custom_vjp"
    factor: str = ""  # host function in its derivative rule
    ending: str = ""  # what it returns instead of the sum; "$" stands for the sum


@dataclasses.dataclass
class Program:
    """A program and how it is run."""

    hosts: list[Host]
    helpers: list[Function]
    main: Function
    mode: str = "jit"  # or "eager", "aot"
    inputs: tuple[float, ...] = (0.75,)
    blocks: str = "one"  # recorded in "one" block, in "each", or "late": from the second run on
    fail: tuple[str, int] | None = None  # the host function that raises, and the number of the call

    def functions(self) -> list[Function]:
        """Return the functions of the module, in the order of its text."""
        return [*self.helpers, self.main]


def walk(functions: list[Function]) -> list[Function]:
    """Return all functions, including nested ones."""
    found = []
    for function in functions:
        found.append(function)
        for statement in function.body:
            found += walk(list(statement.functions))
    return found
