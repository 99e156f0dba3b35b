"""A random program as a value.

Every variable holds a float32 scalar, so any statement can follow any other. Deleting a statement
leaves the rest of the program valid: a name that is not defined where it is used is written as the
first parameter of the enclosing function. Other dtypes, shapes and pytrees are made and reduced in
the line that calls a host function, see `Typed`.
"""

from __future__ import annotations

import dataclasses

from tests.interface import VMAP_METHODS

# One call for a batch, in which the host function sees which arguments are batched.
TOGETHER = tuple(
    name for name, one in VMAP_METHODS.items() if not one.looped and not one.hides_axes
)


@dataclasses.dataclass(frozen=True)
class Typed:
    """The arrays that a host function gets and returns, each a dtype and a shape."""

    leaves: tuple[tuple[str, tuple[int, ...]], ...]
    results: tuple[tuple[str, tuple[int, ...]], ...]
    tree: str  # the structure of the result, with leaves ``r[0]``, ``r[1]``
    literal: str = ""  # a further argument: a Python number or a weakly typed array
    tag: str = ""  # a further argument: a string
    declared: str = "struct"  # or "weak", "array"
    masked: bool = False  # called through ``where``

    @property
    def ranks(self) -> tuple[int, ...]:
        """The rank of each array argument of the host function."""
        return (*(len(shape) for _, shape in self.leaves), *[0] * bool(self.literal))


@dataclasses.dataclass
class Host:
    """A host function and how it is registered."""

    name: str
    flavor: str  # "pure", "io", "debug", "print", "buffer" or "tap"
    registered: bool  # with a decorator, or else called through a function with JAX's signature
    arity: int = 1
    ordered: bool = False
    method: str | None = None  # vmap_method; None for io and debug: the default
    math: int = 0  # index of the formula
    rule: str = ""  # "jvp", "vjp" or none
    factor: str = ""  # the host function that its rule calls
    pair: bool = False  # returns two results
    side_effect: bool = False  # has_side_effect of a buffer callback
    queued: bool = False  # of a debug callback; JAX's are not
    typed: Typed | None = None  # None: float32 scalars and vectors

    @property
    def sequence(self) -> tuple[str, bool]:
        """Ordered calls of host functions with the same value have an order among each other."""
        return self.flavor, self.queued

    def options(self) -> str:
        """Return the keyword arguments of JAX's callback."""
        if self.flavor == "pure":
            return f"vmap_method={self.method!r}"
        method = f", vmap_method={self.method!r}" * (self.method is not None)
        return f"ordered={self.ordered}" + ", queued=True" * self.queued + method

    @property
    def gets_batches(self) -> bool:
        """Whether one call gets all batch elements, which JAX's io and debug callbacks never do."""
        return self.flavor in ("io", "debug") and self.method in TOGETHER


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
    observer: str = ""  # the call of a callback in its derivative rule
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
    x64: bool = False

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
