"""What machine code for a call site depends on, apart from the function."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from jax.tree_util import tree_flatten_with_path, tree_unflatten
from numba import types

from ...recording import LoweredSite
from ...stack.call import HostCallback

_BYTES = {"b": (1,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8), "f": (4, 8), "c": (8, 16)}


class Operand(NamedTuple):
    """An argument: the operand of that number."""

    number: int


class Buffer(NamedTuple):
    """An argument: the memory of the result of that number."""

    number: int


@dataclasses.dataclass(frozen=True)
class Constant:
    """An argument that is the same in every call."""

    value: Any
    kind: type  # 1 and True are equal


class Default(NamedTuple):
    """An argument that is not passed."""

    value: Any


@dataclasses.dataclass(frozen=True)
class Array:
    """An operand or a result of one host call."""

    dtype: np.dtype
    rank: int
    inner: bool = True  # the innermost looped vmap maps over it

    @property
    def type(self) -> Any:
        """Numba's type of its numbers."""
        return numba.from_dtype(self.dtype)


@dataclasses.dataclass(frozen=True)
class Interface:
    """What machine code for a call site depends on.

    Arguments are trees: `Operand`, `Buffer`, `Constant`, None, or a tuple of them.

    Attributes:
        operands: the operands, in order; the last one is the mask, if there is one.
        results: the results, in order.
        args: the positional arguments.
        kwargs: the keyword arguments, by name.
        paths: the indices that lead to each result in the returned value.
        first: the index of the first operand and result in what XLA passes: 1 after a token.
        cast: whether a conversion may lose information.
        writes: whether the function writes its results instead of returning them.
        masked: whether there is a mask.
    """

    operands: tuple[Array, ...]
    results: tuple[Array, ...]
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    paths: tuple[tuple[int, ...], ...]
    first: int = 0
    cast: bool = False
    writes: bool = False
    masked: bool = False

    def unmasked(self) -> Interface:
        """Return the interface of one host call, which has no mask and no batch."""
        passed = self.operands[: len(self.operands) - self.masked]
        alone = tuple(dataclasses.replace(operand, inner=True) for operand in passed)
        return dataclasses.replace(self, operands=alone, masked=False)


def type_of(argument: Any, interface: Interface) -> Any:
    """Return numba's type of an argument: a number if its rank is 0, else a read-only array."""
    if type(argument) is tuple:
        return types.Tuple([type_of(part, interface) for part in argument])
    if argument is None:
        return types.none
    if isinstance(argument, Constant):
        return numba.typeof(argument.value)
    if isinstance(argument, Default):
        return types.Omitted(argument.value)
    if isinstance(argument, Buffer):
        result = interface.results[argument.number]
        return types.Array(result.type, result.rank, "C")
    operand = interface.operands[argument.number]
    if not operand.rank:
        return operand.type
    return types.Array(operand.type, operand.rank, "C", readonly=True)


def writes_results(callback: HostCallback) -> bool:
    """Return whether the host function writes its results instead of returning them."""
    return callback.options.flavor == "buffer"


def interface_of(callback: HostCallback, lowered: LoweredSite, *, first: int = 0) -> Interface:
    """Return the interface of a call site.

    Args:
        callback: the host function and its trees.
        lowered: the call site.
        first: see `Interface`.

    Raises:
        TypeError: if numba has no type for an argument or a result.
    """
    name, writes = callback.host.name, writes_results(callback)
    looped = [level for level in lowered.levels if level.looped]
    inner = looped[0].batched if looped else [True] * len(lowered.operands)
    given, declared = lowered.host_avals()
    operands = [
        Array(computable(name, aval.dtype), len(aval.shape), on)
        for aval, on in zip(given, inner, strict=False)
    ]
    if lowered.masked:
        operands.append(Array(np.dtype(bool), 0, inner[-1]))
    results = [Array(computable(name, aval.dtype), len(aval.shape)) for aval in declared]
    args, kwargs = tree_unflatten(callback.in_tree, _leaves(callback))
    out_tree: Any = callback.out_tree
    if writes:
        args = (tree_unflatten(out_tree, map(Buffer, range(len(results)))), *args)
    return Interface(
        tuple(operands),
        tuple(results),
        tuple(_checked(name, arg) for arg in args),
        tuple((key, _checked(name, arg)) for key, arg in kwargs.items()),
        () if writes or out_tree is None else tuple(_paths(name, out_tree)),
        first=first,
        cast=callback.options.cast,
        writes=writes,
        masked=lowered.masked,
    )


def _leaves(callback: HostCallback) -> Iterator[Any]:
    """Yield the leaves of the arguments: operands, and static values as constants."""
    number, static = 0, callback.static.values
    for place in range(callback.in_tree.num_leaves):
        if place in static:
            yield _constant(callback.host.name, static[place])
        else:
            yield Operand(number)
            number += 1


def _checked(name: str, tree: Any) -> Any:
    """Return `tree`; raise TypeError if it has more than arrays, constants and tuples."""
    if type(tree) is tuple:
        return tuple(_checked(name, part) for part in tree)
    if tree is None or isinstance(tree, (Operand, Buffer, Constant)):
        return tree
    raise TypeError(
        f"cannot compile {name} for a {type(tree).__name__} as an argument: compiled functions "
        "take numbers, arrays and tuples of them. Pass its arrays as arguments of their own."
    )


def _paths(name: str, out_tree: Any) -> Iterator[tuple[int, ...]]:
    """Yield the indices that lead to each result in the returned value."""
    for path, _ in tree_flatten_with_path(tree_unflatten(out_tree, range(out_tree.num_leaves)))[0]:
        for key in path:
            if not hasattr(key, "idx"):
                raise TypeError(
                    f"cannot compile {name} for a result with the key {key}: compiled functions "
                    "return an array, or a tuple of arrays. Declare a tuple."
                )
        yield tuple(key.idx for key in path)


@functools.cache
def computable(name: str, dtype: str) -> np.dtype:
    """Return the dtype of that name; raise TypeError if numba does not compute with it."""
    try:
        found = np.dtype(dtype)
    except TypeError:  # of ml_dtypes
        found = np.dtype(object)
    if found.itemsize not in _BYTES.get(found.kind, ()):
        raise TypeError(
            f"cannot compile {name} for {dtype}: numba does not compute with it. Convert to "
            "float32 or int32 in the JAX code, x.astype(jnp.float32)."
        )
    return found


def _constant(name: str, value: Any) -> Constant:
    try:
        numba.typeof(value)
    except ValueError:
        raise TypeError(
            f"cannot compile {name} for the static argument {value!r}: numba has no type for a "
            f"{type(value).__name__}. Pass numbers, strings or arrays."
        ) from None
    return Constant(value, type(value))
