"""``derivative="finite"``: central differences of a host function, on the host."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_flatten, tree_map, tree_structure, tree_unflatten

from ... import jax_compat
from ...stack import options
from ...stack.call import AddedName, ArrayNames, HostFunction, aligned, is_array, number_to_array
from ...stack.errors import add_note
from ...stack.results import ResultChecker, result_checker
from ...stack.trace import bound_where, find_frames
from ._custom_rules import Gate

SMALL = 0.01  # the scale of an element is at least this fraction of the largest element
COLUMN = AddedName("column of the Jacobian")  # which one a call computes: its batch element
TINY = 0.001  # a scale below this is not trusted if its step does not change the result

# Binds a host function, given its declared result, the arguments, and ``mask=``.
BindCall = Callable[..., Any]


@options.check("derivative")
def _check_derivative(derivative: Any) -> Any:
    __tracebackhide__ = True
    if derivative != "finite":
        raise ValueError(
            f"unknown derivative {derivative!r}. Pass derivative='finite' or None, or define a "
            "rule with defjvp or defvjp."
        )
    return derivative


def with_differences(
    primal: Callable[..., Any],
    host: HostFunction,
    bind: BindCall,
    *,
    apart: bool = False,
    gate: Gate | None = None,
) -> Callable[..., Any]:
    """Return `primal` with a derivative by central differences.

    One more host call computes the Jacobian, calling the host function on both sides of each
    element. JAX multiplies it with the tangents, so forward mode, reverse mode and vmap work. The
    derivative itself cannot be differentiated. Arguments that are not arrays stay unchanged.

    Args:
        primal: the callback without a rule.
        host: its host function.
        bind: binds the host function of the Jacobian as a pure callback with the vmap method
            ``"sequential"``.
        apart: whether each element is a call of its own, in a vmap over their numbers, which an
            executor runs in parallel.
        gate: what the first argument of `primal` does to its derivative: a mask, which also masks
            the call that computes the Jacobian. None: it is the user's.
    """
    first = 0 if gate is None else 1

    def call(*args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        mask, args = args[:first], args[first:]
        leaves, in_tree = tree_flatten((args, kwargs))
        places = [n for n, leaf in enumerate(leaves) if is_array(leaf)]

        def complete(arrays: Sequence[Any]) -> list[Any]:
            given = dict(zip(places, arrays, strict=True))
            return [given.get(n, leaf) for n, leaf in enumerate(leaves)]

        def plain(*arrays: Any) -> Any:
            __tracebackhide__ = True
            args, kwargs = tree_unflatten(in_tree, complete(arrays[first:]))
            return primal(*arrays[:first], *args, **kwargs)

        def jacobian(differences: _Differences, declared: Any, arrays: Sequence[Any]) -> Any:
            def bound(*arrays: Any) -> Any:
                given = tuple(complete(arrays[first:]))
                of_mask = functools.partial(bind, mask=arrays[0] if first else None)
                if apart:
                    return _column_by_column(differences, declared, of_mask, given)
                return of_mask(HostFunction(differences), declared, given)

            return _once(host, bound)(*arrays)

        plain.__name__ = host.name
        differentiable = jax.custom_jvp(plain)
        # The mask is the first primal, but no leaf.
        whose = [*([-1] * first), *places]
        rule = placed(functools.partial(_rule, differentiable, host, in_tree, whose, jacobian))
        rule = rule if gate is None else gate.tangents(rule)
        differentiable.defjvp(rule, symbolic_zeros=True)
        return differentiable(*mask, *(leaves[n] for n in places))

    return call


def _rule(
    differentiable: Callable[..., Any],
    host: HostFunction,
    in_tree: PyTreeDef,
    places: Sequence[int],
    jacobian: Callable[..., Any],
    primals: Sequence[Any],
    tangents: Sequence[Any],
) -> tuple[Any, Any]:
    """Compute the jvp of the function with differences, for flat arrays."""
    out = differentiable(*primals)
    results, out_tree = tree_flatten(out)
    moving = [n for n, t in enumerate(tangents) if is_tangent(t)]
    floating = tuple(n for n, y in enumerate(results) if jnp.issubdtype(y.dtype, jnp.inexact))
    check_real(host, [primals[n] for n in moving], results)
    avals = tuple((y.shape, y.dtype) for y in results)
    differences = _Differences(
        host, in_tree, tuple(places[n] for n in moving), out_tree, avals, floating
    )
    blocks = [
        [jax.ShapeDtypeStruct((*results[n].shape, *jnp.shape(primals[k])), results[n].dtype)
         for k in moving]
        for n in floating
    ]  # fmt: skip
    if moving and floating:
        blocks = jacobian(differences, blocks, primals)
    rows = dict(zip(floating, blocks, strict=True))
    moved = [
        jax_compat.sharded_as(product(rows[n], [tangents[k] for k in moving], y), y)
        if n in rows
        else np.zeros(y.shape, jax.dtypes.float0)
        for n, y in enumerate(results)
    ]
    return out, tree_unflatten(out_tree, moved)


def placed(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Return `rule`, whose calls have the call site of the code that is running now.

    It gets arrays alone.
    """
    frames = find_frames().frames

    def at_call(*given: Any) -> Any:
        __tracebackhide__ = True
        with bound_where(frames):
            return rule(*tree_map(number_to_array, given))

    return at_call


def _once(host: HostFunction, jacobian: Callable[..., Any]) -> Callable[..., Any]:
    """Return `jacobian` with a jvp rule that raises TypeError."""
    guarded = jax.custom_jvp(jacobian)

    @guarded.defjvp
    def refuse(primals: Any, tangents: Any) -> Any:
        __tracebackhide__ = True
        raise TypeError(
            f"cannot differentiate {host.name} twice by finite differences. Define a rule in terms "
            f"of {host.name}: @{host.variable}.defjvp or {host.variable}.defvjp."
        )

    return guarded


def _column_by_column(
    differences: _Differences, declared: Any, bind: BindCall, given: tuple[Any, ...]
) -> Any:
    """Return the blocks that `differences` computes, with a host call for each column of them."""
    sizes = [math.prod(jnp.shape(given[k])) for k in differences.which]
    if not any(sizes):
        return bind(HostFunction(differences), declared, given)
    host = HostFunction(_Column(differences))
    column = [jax.ShapeDtypeStruct(*differences.avals[n]) for n in differences.floating]
    numbers = jnp.arange(sum(sizes), dtype=np.int32)
    rows = jax.vmap(lambda number: bind(host, column, (number, *given)))(numbers)
    ends = np.cumsum(sizes)[:-1].tolist()
    return [
        [
            jnp.moveaxis(part, 0, -1).reshape(block.shape)
            for part, block in zip(jnp.split(of_result, ends), blocks, strict=True)
        ]
        for of_result, blocks in zip(rows, declared, strict=True)
    ]


@dataclasses.dataclass(frozen=True)
class _Differences:
    """The host function that computes the blocks of the Jacobian; compared by its fields."""

    host: HostFunction
    in_tree: PyTreeDef  # of (args, kwargs)
    which: tuple[int, ...]  # argument leaves to differentiate by
    out_tree: PyTreeDef
    avals: tuple[tuple[tuple[int, ...], Any], ...]  # shape and dtype of each result
    floating: tuple[int, ...]  # result leaves to differentiate

    @property
    def __name__(self) -> str:
        return f"{self.host.name} (finite differences)"

    @property
    def _operand_names(self) -> tuple[str, ...]:
        """The names of the arguments of the function itself."""
        return ArrayNames(self.host.current, self.in_tree).operands()

    def __call__(self, *leaves: Any) -> list[list[np.ndarray]]:
        columns = [self._block(list(leaves), k) for k in self.which]
        return [[column[n] for column in columns] for n in range(len(self.floating))]

    def _block(self, leaves: list[Any], k: int) -> list[np.ndarray]:
        """Return the derivatives of all results with respect to the elements of one argument."""
        shape = np.shape(leaves[k])
        block = [np.empty((*self.avals[n][0], math.prod(shape))) for n in self.floating]
        for place in range(math.prod(shape)):
            for column, slope in zip(block, self.slopes(leaves, k, place), strict=True):
                column[..., place] = slope
        return [column.reshape((*column.shape[:-1], *shape)) for column in block]

    def slopes(self, leaves: list[Any], k: int, place: int) -> list[np.ndarray]:
        """Return the derivatives of all results with respect to one element of one argument."""
        x = np.asarray(leaves[k])
        wide, unit = x.astype(np.float64), _relative_step(x.dtype)

        def results(distance: float) -> list[np.ndarray]:
            found = self._results(leaves, k, place, _moved(wide, place, distance))
            return [found[n] for n in self.floating]

        return _central_differences(
            results, step_sizes(x).flat[place], math.copysign(unit, wide.flat[place])
        )

    @functools.cached_property
    def _check(self) -> ResultChecker:
        return result_checker(
            f"{self.host.name}, called for finite differences with an argument in float64,",
            self.out_tree,
            [shape for shape, _ in self.avals],
            [np.float64 if n in self.floating else d for n, (_, d) in enumerate(self.avals)],
            cast=True,  # differentiated results are float64 and lose nothing
        )

    def _results(
        self, leaves: list[Any], k: int, place: int, x: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        moved = jax.device_put(aligned(x)) if isinstance(leaves[k], jax.Array) else x
        args, kwargs = tree_unflatten(self.in_tree, [*leaves[:k], moved, *leaves[k + 1 :]])
        try:
            return self._check(self.host.current(*args, **kwargs))
        except Exception as error:
            before = float(np.asarray(leaves[k]).flat[place])
            start = f"for finite differences of {self.host.name}: element "
            note = (
                f"{start}{place} was moved from {before} to {x.flat[place]}; near a boundary of "
                "its domain, define a rule with defjvp or defvjp"
            )
            add_note(error, note, instead_of=start)
            raise

    def __reduce__(self) -> Any:
        trees = [
            tree_unflatten(tree, range(tree.num_leaves)) for tree in (self.in_tree, self.out_tree)
        ]
        return _received, (self.host.current, *trees, self.which, self.avals, self.floating)


def _received(function: Callable[..., Any], args: Any, out: Any, which: Any, *rest: Any) -> Any:
    """Return the differences that were sent to a worker, where the function has no other name."""
    return _Differences(
        HostFunction(function), tree_structure(args), which, tree_structure(out), *rest
    )


@dataclasses.dataclass(frozen=True)
class _Column:
    """The host function that computes one column of the Jacobian; compared by its field."""

    differences: _Differences

    @property
    def __name__(self) -> str:
        return self.differences.__name__

    @property
    def _operand_names(self) -> tuple[str, ...]:
        names = self.differences._operand_names
        return (COLUMN, *names) if names else ()

    def __call__(self, number: Any, *leaves: Any) -> list[np.ndarray]:
        which = self.differences.which
        ends = np.cumsum([np.size(leaves[k]) for k in which])
        argument = int(np.searchsorted(ends, number, side="right"))
        k = which[argument]
        place = int(number) - int(ends[argument]) + np.size(leaves[k])
        return self.differences.slopes(list(leaves), k, place)


def _central_differences(
    results: Callable[[float], list[np.ndarray]], step: float, unit: float
) -> list[np.ndarray]:
    """Return the derivatives of `results`, a function of the distance, at distance 0.

    If a tiny step does not change any result, the function does not vary on the scale of its
    argument. Then a one-sided, second-order formula with steps `unit` and ``2 * unit`` is used;
    these point away from zero, so that the argument keeps its sign.
    """
    high, low = results(step), results(-step)
    with np.errstate(all="ignore"):  # a non-finite result makes the derivative non-finite
        if step >= TINY * abs(unit) or not all(map(np.array_equal, high, low)):
            return [(a - b) / (2 * step) for a, b in zip(high, low, strict=True)]
    near, far = results(unit), results(2 * unit)
    with np.errstate(all="ignore"):
        return [
            (4 * a - b - 3 * base) / (2 * unit) for a, b, base in zip(near, far, low, strict=True)
        ]


def _moved(x: np.ndarray, place: int, step: float) -> np.ndarray:
    """Return `x` with one element moved, read-only like all arguments of host functions."""
    moved = x.copy()
    with np.errstate(all="ignore"):
        moved.flat[place] += step
    moved.flags.writeable = False
    return moved


def step_sizes(x: np.ndarray) -> np.ndarray:
    """Return the step to each side: the cube root of the machine epsilon, times the scale.

    This step balances the truncation error, which grows with its square, against the rounding error
    of the function, which grows with its inverse (Press et al., Numerical Recipes, section 5.7).
    The scale of an element is its absolute value, but at least 0.01 times the largest finite one;
    it is 1 if all elements are zero.
    """
    sizes = np.abs(x.astype(np.float64))
    largest = sizes[np.isfinite(sizes)].max(initial=0.0)
    scale = np.maximum(sizes, SMALL * largest) if largest else np.ones_like(sizes)
    return _relative_step(x.dtype) * scale


def _relative_step(dtype: Any) -> float:
    return float(jnp.finfo(dtype).eps) ** (1 / 3)


def product(row: Sequence[Any], directions: Sequence[Any], like: Any) -> Any:
    """Return the sum of Jacobian blocks times tangents."""
    parts = [
        jnp.tensordot(block, t.astype(block.dtype), axes=t.ndim)
        for block, t in zip(row, directions, strict=True)
    ]
    return sum(parts, jnp.zeros(like.shape, like.dtype))


def is_tangent(leaf: Any) -> bool:
    """Return whether a tangent is not zero by its type."""
    is_zero = isinstance(leaf, jax.custom_derivatives.SymbolicZero)
    return not is_zero and getattr(leaf, "dtype", None) != jax.dtypes.float0


def check_real(
    host: HostFunction,
    arguments: Sequence[Any],
    results: Sequence[Any],
    verb: str = "take finite differences of",
) -> None:
    """Raise TypeError if an argument or a result is complex."""
    __tracebackhide__ = True
    for leaf in (*arguments, *results):
        dtype = jnp.result_type(leaf)
        if jnp.issubdtype(dtype, jnp.complexfloating):
            raise TypeError(
                f"cannot {verb} {host.name}: {dtype.name} is complex. "
                f"Define a rule: @{host.variable}.defjvp or {host.variable}.defvjp."
            )
