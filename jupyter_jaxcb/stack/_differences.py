"""``derivative="finite"``: central differences of a host function, on the host."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_flatten, tree_leaves, tree_unflatten

from ._callback import HostFunction
from ._contract import ResultError

SMALL = 0.01  # of the largest element: the scale of a smaller one's step

# Binds a host function with its declared result, for arguments.
Bind = Callable[[HostFunction, Any, tuple[Any, ...]], Any]


def with_differences(
    primal: Callable[..., Any], host: HostFunction, bind: Bind
) -> Callable[..., Any]:
    """`primal` with a derivative that calls the host function at both sides of each element.

    The Jacobian comes from one more host call, in which all perturbations are made, and its product
    with the tangents is JAX's: so forward and reverse mode work, and vmap. It has no derivative of
    its own.

    Args:
        primal: the callback without a rule.
        host: its host function.
        bind: binds another one, as a pure callback that vmap calls lane by lane.
    """
    differentiable = jax.custom_jvp(primal)

    def rule(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Any, Any]:
        out = differentiable(*primals)
        results, out_tree = tree_flatten(out)
        values, in_tree = tree_flatten(primals)
        directions = tree_leaves(tangents, is_leaf=_is_zero)
        which = tuple(n for n, t in enumerate(directions) if _is_tangent(t))
        floating = tuple(n for n, y in enumerate(results) if _is_floating(y))
        _check_real(host, [values[n] for n in which], results)
        blocks = _Differences(host, in_tree, which, floating, tuple(y.shape for y in results))
        declared = [
            [jax.ShapeDtypeStruct((*results[n].shape, *jnp.shape(values[k])), results[n].dtype)
             for k in which]
            for n in floating
        ]  # fmt: skip
        jacobian = declared
        if which and floating:
            jacobian = _once(host, lambda *args: bind(HostFunction(blocks), declared, args))(
                *primals
            )
        rows = dict(zip(floating, jacobian, strict=True))
        moved = [
            _product(rows[n], [directions[k] for k in which], y) if n in rows else _no_tangent(y)
            for n, y in enumerate(results)
        ]
        return out, tree_unflatten(out_tree, moved)

    differentiable.defjvp(rule, symbolic_zeros=True)
    return differentiable


def _once(host: HostFunction, jacobian: Callable[..., Any]) -> Callable[..., Any]:
    """`jacobian`, which says so when it is to be differentiated itself."""
    guarded = jax.custom_jvp(jacobian)

    @guarded.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        raise TypeError(
            f"cannot differentiate {host.name} twice by finite differences. Give it a rule that is "
            f"written in terms of {host.name}: @{host.name}.defjvp or .defvjp."
        )

    return guarded


@dataclasses.dataclass(frozen=True)
class _Differences:
    """The host function that computes the blocks of the Jacobian; equal for equal questions."""

    host: HostFunction
    in_tree: PyTreeDef
    which: tuple[int, ...]  # argument leaves to differentiate by
    floating: tuple[int, ...]  # result leaves to differentiate
    shapes: tuple[tuple[int, ...], ...]  # of the results

    @property
    def __name__(self) -> str:
        return f"{self.host.name} (finite differences)"

    def __call__(self, *args: Any) -> list[list[np.ndarray]]:
        leaves = tree_leaves(args)
        columns = [self._block(leaves, k) for k in self.which]
        return [[column[n] for column in columns] for n in range(len(self.floating))]

    def _block(self, leaves: list[Any], k: int) -> list[np.ndarray]:
        """The derivatives of all results by the elements of one argument."""
        x = np.asarray(leaves[k])
        steps = step_sizes(x)
        wide = x.astype(np.float64)
        shapes = [self.shapes[n] for n in self.floating]
        block = [np.empty((*shape, x.size)) for shape in shapes]
        for place in range(x.size):
            above, below = wide.copy(), wide.copy()
            above.flat[place] += steps.flat[place]
            below.flat[place] -= steps.flat[place]
            distance = above.flat[place] - below.flat[place]
            ends = zip(
                self._results(leaves, k, above), self._results(leaves, k, below), strict=True
            )
            for column, (high, low) in zip(block, ends, strict=True):
                column[..., place] = (high - low) / distance
        return [column.reshape((*column.shape[:-1], *x.shape)) for column in block]

    def _results(self, leaves: list[Any], k: int, x: np.ndarray) -> list[np.ndarray]:
        x.flags.writeable = False
        args = tree_unflatten(self.in_tree, [*leaves[:k], x, *leaves[k + 1 :]])
        answer = tree_leaves(self.host.current(*args))
        found = [np.asarray(answer[n], np.float64) for n in self.floating if n < len(answer)]
        wanted = [self.shapes[n] for n in self.floating]
        if [y.shape for y in found] != wanted:
            raise ResultError(
                f"{self.host.name}, called for finite differences with an argument in float64, "
                f"answered with shapes {[y.shape for y in found]} where {wanted} were declared."
            )
        return found


def step_sizes(x: np.ndarray) -> np.ndarray:
    """How far to go to each side: the cube root of the dtype's eps, times the element's scale.

    That balances the error of the difference, which grows with the square of the step, against that
    of the function's own rounding, which grows with its inverse (Press et al., Numerical Recipes,
    5.7). The scale is the element's size, at least a hundredth of the largest one's; 1 for zeros.
    """
    sizes = np.abs(x.astype(np.float64))
    largest = sizes.max(initial=0.0)
    scale = np.maximum(sizes, SMALL * largest) if largest else np.ones_like(sizes)
    return float(jnp.finfo(x.dtype).eps) ** (1 / 3) * scale


def _product(row: Sequence[Any], directions: Sequence[Any], like: Any) -> Any:
    """The sum of Jacobian blocks times tangents."""
    parts = [
        jnp.tensordot(block, t.astype(block.dtype), axes=t.ndim)
        for block, t in zip(row, directions, strict=True)
    ]
    return sum(parts, jnp.zeros(like.shape, like.dtype))


def _no_tangent(y: Any) -> Any:
    return np.zeros(y.shape, jax.dtypes.float0)


def _is_zero(leaf: Any) -> bool:
    return isinstance(leaf, jax.custom_derivatives.SymbolicZero)


def _is_tangent(leaf: Any) -> bool:
    return not _is_zero(leaf) and getattr(leaf, "dtype", None) != jax.dtypes.float0


def _is_floating(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.inexact)


def _check_real(host: HostFunction, arguments: Sequence[Any], results: Sequence[Any]) -> None:
    for leaf in (*arguments, *results):
        dtype = jnp.result_type(leaf)
        if jnp.issubdtype(dtype, jnp.complexfloating):
            raise TypeError(
                f"cannot take finite differences of {host.name}: {dtype.name} is complex. "
                f"Give it a rule: @{host.name}.defjvp or .defvjp."
            )
