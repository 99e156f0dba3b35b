"""Check what derivative rules return before JAX does, because its messages omit the callback.

The checks accept whatever JAX accepts under jit.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import CustomVJPPrimal, SymbolicZero
from jax.tree_util import (
    PyTreeDef,
    register_static,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)

from ...stack.call import given_name, number_to_array, text_of

FLOAT0 = jax.dtypes.float0
_NO_CHECKS = ("jax_disable_bwd_checks", "jax_custom_vjp_disable_shape_check")  # JAX's options


class Rule(NamedTuple):
    """A derivative rule of a callback.

    Attributes:
        name: the name of the callback, for messages.
        function: the user's rule.
        declared: takes the arguments; returns flat avals and structure of the callback's result.
    """

    name: str
    function: Callable[..., Any]
    declared: Callable[..., tuple[Sequence[Any], PyTreeDef]]

    def __str__(self) -> str:
        given = given_name(self.function) or text_of(self.function)
        return f"{self.name}: its rule {given}"


def checked_jvp(rule: Rule, nondiff_argnums: Sequence[int]) -> Callable[..., Any]:
    """Return the forward-mode `rule`, checked: it raises TypeError for an invalid result."""

    @functools.wraps(rule.function)
    def checked(*args: Any) -> tuple[Any, Any]:
        *fixed, primals, tangents = args
        primals, tangents = tree_map(number_to_array, (primals, tangents))
        pair = rule.function(*fixed, primals, tangents)
        _check_pair(rule, pair, "(primal_out, tangent_out)")
        value, tangent = pair
        given = dict(zip(sorted(set(nondiff_argnums)), fixed, strict=True))
        moving = iter(primals)
        count = len(fixed) + len(primals)
        whole = [given[n] if n in given else next(moving) for n in range(count)]
        _check_value(rule, value, whole)
        _check_tangent(rule, value, tangent)
        return value, tangent

    return checked


def checked_vjp(
    forward: Rule, backward: Rule, nondiff_argnums: Sequence[int]
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return both functions of a reverse-mode rule, checked: they raise for an invalid result."""

    @functools.wraps(forward.function)
    def checked_forward(*args: Any) -> tuple[Any, Any]:
        args = tuple(x if n in nondiff_argnums else _arrays(x) for n, x in enumerate(args))
        pair = forward.function(*args)
        _check_pair(forward, pair, "(primal_out, residuals)")
        value, residuals = pair
        given = tree_map(plain, args, is_leaf=_is_flagged)
        _check_value(forward, value, given)
        moving = tuple(arg for n, arg in enumerate(given) if n not in nondiff_argnums)
        return value, (residuals, _Arguments.of(moving))

    @functools.wraps(backward.function)
    def checked_backward(*args: Any) -> Any:
        *fixed, (residuals, arguments), cotangent = args
        cotangents = backward.function(*fixed, residuals, _arrays(cotangent))
        arguments.check(backward, cotangents)
        return cotangents

    return checked_forward, checked_backward


@register_static
@dataclasses.dataclass(frozen=True)
class _Arguments:
    """The arguments that need a cotangent: a static pytree node that travels with the residuals."""

    tree: PyTreeDef
    avals: tuple[Any, ...]

    @classmethod
    def of(cls, args: tuple[Any, ...]) -> _Arguments:
        leaves, tree = tree_flatten(args)
        return cls(tree, tuple(map(_aval, leaves)))

    def check(self, rule: Rule, returned: Any) -> None:
        __tracebackhide__ = True
        wanted = tree_unflatten(self.tree, self.avals)
        if not isinstance(returned, (tuple, list)) or len(returned) != len(wanted):
            is_tuple = isinstance(returned, (tuple, list))
            got = (
                _count(len(returned), "cotangent") if is_tuple else f"{_show(returned)}, no tuple,"
            )
            raise (_error_of_structure() if is_tuple else TypeError)(
                f"cannot differentiate {rule} returned {got} for "
                f"{_count(len(wanted), 'argument')}. Return a tuple of "
                f"{_count(len(wanted), 'cotangent')}, with None for arguments without one."
            )
        if any(getattr(jax.config, option, False) for option in _NO_CHECKS):
            return
        for n, (cotangents, argument) in enumerate(zip(returned, wanted, strict=True)):
            error: type[Exception] = ValueError  # as JAX raises for shapes
            try:
                found = tree_map(_fitting, cotangents, argument, is_leaf=lambda x: x is None)
            except ValueError:
                found, error = False, _error_of_structure()
            if not all(tree_leaves(found)):
                raise error(
                    f"cannot differentiate {rule} returned the cotangent {_show(cotangents)} for "
                    f"argument {n}, expected {_show(argument)}. Return a cotangent with the "
                    "structure and shapes of the argument, or None."
                )


def _error_of_structure() -> type[Exception]:
    """Return the class that JAX raises; with its future `custom_vjp` it is another one."""
    return ValueError if getattr(jax.config, "jax_custom_vjp3", False) else TypeError


@dataclasses.dataclass(frozen=True)
class _Aval:
    """Shape and dtype of an array, as a leaf."""

    shape: tuple[int, ...]
    dtype: Any

    def __repr__(self) -> str:
        name = "float0" if self.dtype == FLOAT0 else getattr(self.dtype, "name", str(self.dtype))
        return f"{name}{list(self.shape)}"


def _aval(leaf: Any) -> Any:
    """Return the aval of an array; return anything else unchanged, for JAX to reject."""
    if isinstance(leaf, SymbolicZero):
        leaf = leaf.aval
    elif not isinstance(leaf, _Aval):
        try:
            leaf = jax.typeof(leaf)
        except TypeError:
            return leaf
    return _Aval(tuple(leaf.shape), leaf.dtype)


def plain(leaf: Any) -> Any:
    """Return an argument of a forward rule without its flag for differentiation."""
    return leaf.value if isinstance(leaf, CustomVJPPrimal) else leaf


def _arrays(tree: Any) -> Any:
    """Return a pytree with its numbers as arrays."""
    return tree_map(
        lambda x: (
            dataclasses.replace(x, value=number_to_array(x.value))
            if _is_flagged(x)
            else number_to_array(x)
        ),
        tree,
        is_leaf=_is_flagged,
    )


def _is_flagged(leaf: Any) -> bool:
    return isinstance(leaf, CustomVJPPrimal)


def _fitting(cotangent: Any, argument: Any) -> bool:
    """Return whether JAX accepts `cotangent` for all the leaves of `argument`."""
    aval = _aval(cotangent)
    return cotangent is None or all(
        not jnp.issubdtype(leaf.dtype, jnp.inexact) or getattr(aval, "shape", ()) == leaf.shape
        for leaf in tree_leaves(argument)
    )


def _check_pair(rule: Rule, pair: Any, example: str) -> None:
    __tracebackhide__ = True
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise TypeError(
            f"cannot differentiate {rule} returned {_show(pair)}. Return a pair, {example}."
        )


def _check_value(rule: Rule, value: Any, args: Sequence[Any]) -> None:
    """Raise TypeError unless `value` matches the callback's result; JAX checks it only in jit."""
    __tracebackhide__ = True
    avals, tree = rule.declared(*args)
    declared = tree_unflatten(tree, [_Aval(aval.shape, aval.dtype) for aval in avals])
    if _avals(value) != _avals(declared):
        raise TypeError(
            f"cannot differentiate {rule} returned the value {_show(value)}, expected "
            f"{_show(declared)}. Return the result of {rule.name} first."
        )


def _check_tangent(rule: Rule, value: Any, tangent: Any) -> None:
    __tracebackhide__ = True
    wanted = tree_map(_tangent_aval, tree_map(_aval, value))
    if _avals(tangent) == _avals(wanted):
        return
    leaves = tree_leaves(wanted)
    zeros = any(isinstance(leaf, _Aval) and leaf.dtype == FLOAT0 for leaf in leaves)
    raise TypeError(
        f"cannot differentiate {rule} returned the tangent {_show(tangent)}, expected "
        f"{_show(wanted)} for the value {_show(value)}. Return "
        + ("one tangent" if len(leaves) == 1 else f"{len(leaves)} tangents, one for each result,")
        + " of that structure, shape and dtype"
        + ("; np.zeros(shape, jax.dtypes.float0) for integers." if zeros else ".")
    )


def _tangent_aval(leaf: Any) -> Any:
    if isinstance(leaf, _Aval) and not jnp.issubdtype(leaf.dtype, jnp.inexact):
        return _Aval(leaf.shape, np.dtype(FLOAT0))
    return leaf


def _avals(tree: Any) -> tuple[list[Any], PyTreeDef]:
    leaves, structure = tree_flatten(tree)
    return list(map(_aval, leaves)), structure


def _show(tree: Any) -> str:
    """Return the text of a pytree with avals in the place of its arrays: ``(float32[3],)``."""
    return repr(tree_map(_aval, tree))


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
