"""The host function of a callback with the arguments of one call, to be run many times."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_leaves, tree_unflatten

from ... import jax_compat
from ...register import Callback
from ...stack.call import is_array, signature_of, without_leading
from ...stack.errors import describe
from ...stack.flavors.buffer import run_checked
from ...stack.results import leaf_paths, result_avals, result_checker

SECONDS = 10.0  # no run begins after this time
_LARGE = 1 << 22  # bytes of arguments and results from which on few values are made up
_NUMBERS = (bool, int, float, complex)
clock = time.monotonic


class OutOfTime(BaseException):
    """The runs so far took too long. Not an `Exception`, which a host function may raise."""


class Subject:
    """The callback that is checked, with its arguments.

    Attributes:
        callback: the callback.
        operands: the arrays among the leaves of the arguments, as the host function gets them.
        names: their names, ``args[0]['w']``.
        unbatched: whether each operand is a Python number among arrays, which vmap does not map.
        leading: the number of parameters of the host function before the arguments: the output.
        avals: the declared results, flat.
        paths: their paths in the declared structure.
        values: how many of the results are the value; the others are the gradient returned with it.
        returned: what the host function returned in the last run, as it was.
    """

    def __init__(self, callback: Callback, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.callback, self.settings, self.name = callback, callback.settings, callback.host.name
        self._begun, self._runs, self._seconds, self.returned = clock(), 0, 0.0, None
        self._leaves, self._in_tree = tree_flatten((args, kwargs))
        paths, _ = tree_flatten_with_path((args, kwargs))
        self._places = [n for n, leaf in enumerate(self._leaves) if is_array(leaf)]
        arrays = [self._leaves[n] for n in self._places]
        self._keys = [jax_compat.key_implementation(jax.typeof(x).dtype) for x in arrays]
        data = [
            x if key is None else jax.random.key_data(x)
            for x, key in zip(arrays, self._keys, strict=True)
        ]
        self.operands = [np.array(x, jax.typeof(x).dtype) for x in data]
        words = [keystr(paths[n][0]) for n in self._places]
        self.names = [f"{'args' if text[1] == '0' else 'kwargs'}{text[3:]}" for text in words]
        numbers = [type(x) in _NUMBERS for x in arrays]
        self.unbatched = [number and not all(numbers) for number in numbers]
        self.leading = 1 if callback.flavor == "buffer" else 0
        self.avals, self._out_tree, self.paths, self.values = (), None, [], 0
        if callback.returned is not None:
            function = without_leading(callback.host.current, self.leading)
            self.avals, self._out_tree = result_avals(callback.returned, function, args, kwargs)
            declared = tree_unflatten(self._out_tree, self.avals)
            self.paths = leaf_paths(declared)
            value = declared[0] if callback.rule == "gradient" else declared
            self.values = len(tree_leaves(value))

    @property
    def is_large(self) -> bool:
        """Whether batches of its arrays would take much memory."""
        sizes = [int(np.prod(y.shape)) * np.dtype(y.dtype).itemsize for y in self.avals]
        return sum(sizes) + sum(x.nbytes for x in self.operands) > _LARGE

    @property
    def seconds_each(self) -> float:
        """How long a run took on average."""
        return self._seconds / max(self._runs, 1)

    def pause(self) -> None:
        """Raise OutOfTime if the runs so far took too long."""
        if self._runs and clock() - self._begun > SECONDS:
            raise OutOfTime(
                f"no time left after {SECONDS:.0f} s, each run takes "
                f"{self.seconds_each:.2g} s; pass arguments for which it is quicker"
            )

    def run(
        self,
        operands: Sequence[np.ndarray] | None = None,
        *,
        axes: tuple[int, ...] = (),
        rows: int | None = None,
        dtypes: Sequence[Any] | None = None,
        writable: bool = False,
    ) -> list[np.ndarray]:
        """Make one host call and check its result against the declared one.

        Args:
            operands: replace the operands of the subject.
            axes: batch axes before each declared shape.
            rows: replaces the size of the first axis of each declared shape.
            dtypes: replace the declared dtypes.
            writable: pass the arrays themselves, writable, instead of read-only copies.

        Returns:
            Copies of the results, flat.

        Raises:
            Exception: any error of the host function, or a `ResultError`.
            OutOfTime: the runs so far took too long.
        """
        self.pause()
        given = list(self.operands if operands is None else operands)
        if not writable:
            given = [array.copy() for array in given]
            for array in given:
                array.flags.writeable = False
        shapes = [(*axes, *(aval.shape if rows is None else (rows, *aval.shape[1:])))
                  for aval in self.avals]  # fmt: skip
        kinds = [np.dtype(dtype) for dtype in dtypes or [aval.dtype for aval in self.avals]]
        if self.leading:
            outs, tree = list(map(np.empty, shapes, kinds)), self._out_tree
            again = not self.settings.get("has_side_effect")
            write = lambda: self._call(given, tree_unflatten(tree, outs))  # type: ignore # noqa: E731
            run_checked(write, outs, self.paths, self.name, again)
            return outs
        cast = self.settings.get("cast", False) or dtypes is not None
        check = result_checker(self.name, self._out_tree, shapes, kinds, cast=cast)
        self.returned = self._call(given)
        return [np.array(array) for array in check(self.returned)]

    def _call(self, operands: Sequence[np.ndarray], *leading: Any) -> Any:
        in_jax = self.settings.get("arrays") == "jax"
        args, kwargs = self._arguments(self.in_jax(operands) if in_jax else operands)
        begun = clock()
        try:
            return self.callback.host.current(*leading, *args, **kwargs)
        finally:
            self._runs, self._seconds = self._runs + 1, self._seconds + clock() - begun

    def applied(self, *operands: Any) -> list[Any]:
        """Call the callback, as JAX code does; return its floating-point results, flat."""
        self.pause()
        args, kwargs = self._arguments(self.in_jax(operands))
        results = tree_leaves(self.callback(*args, **kwargs))
        return [y for y in results if jax.numpy.issubdtype(y.dtype, np.inexact)]

    def in_jax(self, operands: Sequence[Any]) -> list[Any]:
        """Return operands as JAX arrays, and the data of keys as keys."""
        return [
            jax.numpy.asarray(x) if key is None else jax.random.wrap_key_data(x, impl=key)
            for x, key in zip(operands, self._keys, strict=True)
        ]

    def _arguments(self, operands: Sequence[Any]) -> tuple[Any, Any]:
        arrays = dict(zip(self._places, operands, strict=True))
        return tree_unflatten(
            self._in_tree, [arrays.get(n, leaf) for n, leaf in enumerate(self._leaves)]
        )

    def operands_of(
        self,
        names: Collection[str] | None = None,
        *,
        without: Collection[int] = (),
        floating: bool = True,
    ) -> list[int]:
        """Return the operands of some parameters.

        Args:
            names: the parameters; None: all.
            without: the positions of arguments to leave out.
            floating: whether to return only floating-point ones that are not empty.
        """
        args, kwargs = tree_unflatten(self._in_tree, range(len(self._leaves)))
        try:
            signature = signature_of(self.callback.host.current, self.leading)
            bound = signature.bind(*args, **kwargs)
            named, args, kwargs = bound.arguments, bound.args, bound.kwargs
        except (TypeError, ValueError):  # it has no signature
            named = {}
        chosen: Any = [arg for n, arg in enumerate(args) if n not in without], kwargs
        leaves = tree_leaves(chosen if names is None else [named.get(name) for name in names])
        found = [n for n, place in enumerate(self._places) if place in leaves]
        if not floating:
            return found
        return [n for n in found if self.operands[n].size and is_inexact(self.operands[n].dtype)]


def is_inexact(dtype: Any) -> bool:
    """Return whether a derivative may be by, or of, arrays of `dtype`."""
    return jax.numpy.issubdtype(dtype, np.inexact)


def one_by_one(places: Sequence[int], alone: int = 4) -> list[list[int]]:
    """Group places: the first few alone, the others together."""
    rest = list(places[alone:])
    return [*([n] for n in places[:alone]), *([rest] if rest else [])]


def one_line(error: BaseException) -> str:
    """Return an error in one line, ``ValueError: no luck``."""
    return describe(error).strip().partition("\n")[0]
