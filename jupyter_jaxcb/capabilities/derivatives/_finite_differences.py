"""``derivative="finite"``: central differences of a host function, on the host.

A derivative makes one more host call, which computes the Jacobian: it calls the host function on
both sides of each element of the differentiated arguments. JAX multiplies the Jacobian with the
tangents, so forward mode, reverse mode and vmap work.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import PyTreeDef, tree_structure, tree_unflatten

from ...jax_compat import shaped_array
from ...stack import options
from ...stack.call import AddedName, ArrayNames, HostFunction, aligned
from ...stack.errors import add_note
from ...stack.results import ResultChecker, result_checker
from ._jacobians import check_real, is_floating, moving, multiplied, refusing

_SMALL = 0.01  # the scale of an element is at least this fraction of the largest element
_TINY = 0.001  # a scale below this is not trusted if its step does not change the result
_COLUMN = AddedName("column of the Jacobian")  # which one a call computes: its batch element


@options.check("derivative")
def _check_derivative(derivative: Any) -> Any:
    __tracebackhide__ = True
    if derivative != "finite":
        raise ValueError(
            f"unknown derivative {derivative!r}. Pass derivative='finite' or None, or define a "
            "rule with defjvp or defvjp."
        )
    return derivative


class Differences:
    """A rule that differentiates a host function by central differences.

    Args:
        host: the host function.
        given: the options of the calls that compute the Jacobian.
        apart: whether each column of the Jacobian is a call of its own, in a vmap over their
            numbers, which can run in parallel.
        twice: what cannot be differentiated another time, for the message.
    """

    def __init__(
        self,
        host: HostFunction,
        given: options.Options,
        apart: bool,
        twice: str = "twice by finite differences",
    ) -> None:
        self._options, self._apart = given, apart
        self._again = refusing(
            f"cannot differentiate {host.name} {twice}. Define a rule in terms of "
            f"{host.name}: @{host.variable}.defjvp or {host.variable}.defvjp."
        )

    def __call__(
        self, call: Any, primals: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return results and tangents."""
        __tracebackhide__ = True
        results = call.value(primals)
        floating = [n for n, y in enumerate(results) if is_floating(y)]
        return results, self.tangents(call, primals, moving(tangents), results, floating)

    def tangents(
        self,
        call: Any,
        primals: Sequence[Any],
        dots: dict[int, Any],
        results: Sequence[Any],
        wanted: Sequence[int],
    ) -> list[Any]:
        """Return the tangents of results, see `multiplied`."""
        __tracebackhide__ = True
        callback, host = call.callback, call.callback.host
        check_real(host, ([primals[n] for n in dots], results), "take finite differences of")
        arrays = [n for n in range(callback.in_tree.num_leaves) if n not in callback.static.values]

        def blocks(operands: Sequence[Any], outs: Sequence[Any]) -> list[list[Any]]:
            __tracebackhide__ = True
            leaves, behind = callback.leaves(operands)
            shapes = [operands[n].shape for n in dots]
            sizes = list(map(math.prod, shapes))
            apart = self._apart and any(sizes)
            jacobian = HostFunction(
                _Jacobian(
                    host, callback.in_tree, tuple(arrays[n] for n in dots), callback.out_tree,
                    tuple((y.shape, y.dtype) for y in outs), tuple(wanted), apart,
                )
            )  # fmt: skip
            jacobian.derivative = self._again

            def bind(like: Any, *args: Any) -> Any:
                return call.of_element(jacobian, like, args, {}, self._options, behind)

            if apart:
                column = [shaped_array(outs[n].shape, outs[n].dtype) for n in wanted]
                numbers = jnp.arange(sum(sizes), dtype=np.int32)
                rows = jax.vmap(lambda number: bind(column, number, *leaves))(numbers)
                return _blocks(rows, shapes, jnp)
            whole = [
                [shaped_array((*outs[n].shape, *shape), outs[n].dtype) for shape in shapes]
                for n in wanted
            ]
            return bind(whole, *leaves)

        return multiplied(call, primals, dots, results, wanted, blocks)


def _blocks(rows: Iterable[Any], shapes: Sequence[tuple[int, ...]], xp: Any) -> list[list[Any]]:
    """Turn rows of columns, for each result, into blocks of the shape ``result + argument``."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1].tolist()
    return [
        [
            xp.moveaxis(part, 0, -1).reshape((*row.shape[1:], *shape))
            for part, shape in zip(xp.split(row, ends), shapes, strict=True)
        ]
        for row in rows
    ]


@dataclasses.dataclass(frozen=True)
class _Jacobian:
    """The host function that computes the Jacobian, or one column of it; compared by its fields."""

    host: HostFunction
    in_tree: PyTreeDef  # of (args, kwargs)
    which: tuple[int, ...]  # argument leaves to differentiate by
    out_tree: PyTreeDef
    avals: tuple[tuple[tuple[int, ...], Any], ...]  # shape and dtype of each result
    floating: tuple[int, ...]  # result leaves to differentiate
    apart: bool  # its first argument is the number of the column

    @property
    def __name__(self) -> str:
        return f"{self.host.name} (finite differences)"

    @property
    def _operand_names(self) -> tuple[str, ...]:
        """The names of the arguments of the host function itself."""
        names = ArrayNames(self.host.current, self.in_tree).operands()
        return (_COLUMN, *names) if names and self.apart else names

    def __call__(self, *leaves: Any) -> list[Any]:
        if self.apart:
            return self._column(leaves[1:], int(leaves[0]))
        shapes = [np.shape(leaves[k]) for k in self.which]
        columns = [self._column(leaves, n) for n in range(sum(map(math.prod, shapes)))]
        rows = [
            np.array([column[i] for column in columns]).reshape(len(columns), *self.avals[n][0])
            for i, n in enumerate(self.floating)
        ]
        return _blocks(rows, shapes, np)

    def _column(self, leaves: Sequence[Any], number: int) -> list[np.ndarray]:
        """Return the derivatives of all results by one element of the differentiated arguments.

        If a tiny step does not change any result, the function does not vary on the scale of its
        argument. Then a one-sided formula of second order with steps `unit` and ``2 * unit`` is
        used; these point away from zero, so that the argument keeps its sign.
        """
        ends = np.cumsum([np.size(leaves[k]) for k in self.which])
        argument = int(np.searchsorted(ends, number, side="right"))
        k = self.which[argument]
        x = np.asarray(leaves[k])
        place = number - int(ends[argument]) + x.size
        step, start = step_sizes(x).flat[place], float(x.flat[place])

        def results(distance: float) -> list[np.ndarray]:
            moved = x.astype(np.float64)
            with np.errstate(all="ignore"):
                moved.flat[place] += distance
            moved.flags.writeable = False
            given: Any = (
                jax.device_put(aligned(moved)) if isinstance(leaves[k], jax.Array) else moved
            )
            args, kwargs = tree_unflatten(self.in_tree, [*leaves[:k], given, *leaves[k + 1 :]])
            try:
                found = self._check(self.host.current(*args, **kwargs))
            except Exception as error:
                beginning = f"for finite differences of {self.host.name}: element "
                note = (
                    f"{beginning}{place} was moved from {start} to {moved.flat[place]}; near a "
                    "boundary of its domain, define a rule with defjvp or defvjp"
                )
                add_note(error, note, instead_of=beginning)
                raise
            return [found[n] for n in self.floating]

        high, low = results(step), results(-step)
        with np.errstate(all="ignore"):  # a non-finite result makes the derivative non-finite
            unit = math.copysign(_relative_step(x.dtype), start)
            if step >= _TINY * abs(unit) or not all(map(np.array_equal, high, low)):
                return [(a - b) / (2 * step) for a, b in zip(high, low, strict=True)]
        near, far = results(unit), results(2 * unit)
        with np.errstate(all="ignore"):
            points = zip(near, far, low, strict=True)
            return [(4 * a - b - 3 * base) / (2 * unit) for a, b, base in points]

    @functools.cached_property
    def _check(self) -> ResultChecker:
        return result_checker(
            f"{self.host.name}, called for finite differences with an argument in float64,",
            self.out_tree,
            [shape for shape, _ in self.avals],
            [np.float64 if n in self.floating else d for n, (_, d) in enumerate(self.avals)],
            cast=True,  # differentiated results are float64 and lose nothing
        )

    def __reduce__(self) -> Any:
        trees = [
            tree_unflatten(tree, range(tree.num_leaves)) for tree in (self.in_tree, self.out_tree)
        ]
        rest = self.which, self.avals, self.floating, self.apart
        return _received, (self.host.current, *trees, *rest)


def _received(
    function: Callable[..., Any], args: Any, out: Any, which: Any, *rest: Any
) -> _Jacobian:
    """Return the function that was sent to a worker, where the host function has no other name."""
    return _Jacobian(
        HostFunction(function), tree_structure(args), which, tree_structure(out), *rest
    )


def step_sizes(x: np.ndarray) -> np.ndarray:
    """Return the step to each side: the cube root of the machine epsilon, times the scale.

    This step balances the truncation error, which grows with its square, against the rounding error
    of the function, which grows with its inverse (Press et al., Numerical Recipes, section 5.7).
    The scale of an element is its absolute value, but at least 0.01 times the largest finite one;
    it is 1 if all elements are zero.
    """
    sizes = np.abs(x.astype(np.float64))
    largest = sizes[np.isfinite(sizes)].max(initial=0.0)
    scale = np.maximum(sizes, _SMALL * largest) if largest else np.ones_like(sizes)
    return _relative_step(x.dtype) * scale


def _relative_step(dtype: Any) -> float:
    return float(jnp.finfo(dtype).eps) ** (1 / 3)
