"""The host function of a callback with the arguments of one call, to be run many times."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import jax
import ml_dtypes
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_leaves, tree_unflatten

from ... import jax_compat
from ...register import Callback
from ...stack.call import is_array, signature_of, without_leading
from ...stack.errors import describe
from ...stack.flavors.buffer import run_checked
from ...stack.results import ResultError, kind_of, leaf_paths, result_avals, result_checker

REPEATED = 0.9  # power of eps by which two calls with the same inputs may differ
SAME = 0.6  # and two ways to compute the same
ROUGH = 0.5  # and a value that a derivative rule computes in JAX
EXACT = 1.0
SECONDS = 10.0  # no run begins after this time
_LARGE = 1 << 22  # bytes of arguments and results from which on few values are made up
clock = time.monotonic

Operands = Sequence[np.ndarray]
Wrong = tuple[str, str]  # what is wrong, and what to do about it


class OutOfTime(BaseException):
    """The runs so far took too long. Not an `Exception`, which a host function may raise."""


class Subject:
    """The callback that is checked, with its arguments.

    Attributes:
        operands: the arrays among the leaves of the arguments, as the host function gets them.
        names: their names, ``args[0]['w']``.
        unbatched: whether each operand is a Python number among arrays, which vmap does not map.
        avals: the declared results, flat.
        paths: their paths in the declared structure.
        values: how many of the results are the value; the others are the gradient returned with it.
        result: the flat result for the operands; None: no run has returned what is declared.
        returned: what the host function returned in the last run, as it was.
        misfit: a call with made-up values whose result is not as declared; empty if there is none.
        durations: of the runs so far, in seconds.
        printed: what the runs printed.
        notes, vmap_methods: as in `Check`.
    """

    def __init__(self, callback: Callback, args: Any, kwargs: Any, tolerance: float) -> None:
        self.callback, self.settings, self.name = callback, callback.settings, callback.host.name
        self.tolerance, self.misfit, self.returned = tolerance, "", None
        self.result: list[np.ndarray] | None = None
        self.durations: list[float] = []
        self.printed: list[str] = []
        self.notes: list[str] = []
        self.vmap_methods: dict[str, bool] = {}
        self._begun, self._alone = clock(), {}

        leaves, self._in_tree = tree_flatten_with_path((args, kwargs))
        self._leaves = [leaf for _, leaf in leaves]
        self._places = [n for n, leaf in enumerate(self._leaves) if is_array(leaf)]
        arrays = [self._leaves[n] for n in self._places]
        paths = [leaves[n][0] for n in self._places]
        self.names = [("args", "kwargs")[path[0].idx] + keystr(path[1:]) for path in paths]
        numbers = [type(x) in (bool, int, float, complex) for x in arrays]
        self.unbatched = [number and not all(numbers) for number in numbers]
        self._keys = [jax_compat.key_implementation(jax.typeof(x).dtype) for x in arrays]
        data = [jax.random.key_data(x) if k else x for x, k in zip(arrays, self._keys, strict=True)]
        self.operands = [np.array(x, jax.typeof(x).dtype) for x in data]

        self.leading = 1 if callback.flavor == "buffer" else 0  # parameters before the arguments
        self.avals, self._out_tree, self.paths, self.values = (), None, [], 0
        if callback.returned is not None:
            function = without_leading(callback.host.current, self.leading)
            self.avals, self._out_tree = result_avals(callback.returned, function, args, kwargs)
            declared = tree_unflatten(self._out_tree, self.avals)
            self.paths = leaf_paths(declared)
            self.values = len(tree_leaves(declared[0] if callback.rule == "gradient" else declared))

    @property
    def has_effects(self) -> bool:
        """Whether it may do something besides returning a result, so that it is run once."""
        return self.callback.flavor in ("io", "debug") or bool(self.settings.get("has_side_effect"))

    def pause(self) -> None:
        """Raise OutOfTime if the runs so far took too long."""
        if self.durations and clock() - self._begun > SECONDS:
            raise OutOfTime(
                f"no time left after {SECONDS:.0f} s, each run takes "
                f"{fmean(self.durations):.2g} s; pass arguments for which it is quicker"
            )

    def run(
        self,
        operands: Operands | None = None,
        *,
        shapes: Iterable[tuple[int, ...]] | None = None,
        dtypes: Iterable[Any] | None = None,
        writable: bool = False,
    ) -> list[np.ndarray]:
        """Make one host call, check its result, and return a copy of it, flat.

        Args:
            operands: replace the operands of the subject.
            shapes: replace the declared shapes.
            dtypes: replace the declared dtypes.
            writable: pass the arrays themselves, writable, instead of read-only copies.

        Raises:
            Exception: any error of the host function, or a `ResultError`.
            OutOfTime: the runs so far took too long.
        """
        self.pause()
        arrays = list(self.operands if operands is None else operands)
        if not writable:
            arrays = [array.copy() for array in arrays]
            for array in arrays:
                array.flags.writeable = False
        shapes = list(shapes or [y.shape for y in self.avals])
        kinds = list(map(np.dtype, dtypes or [y.dtype for y in self.avals]))
        if self.leading:
            outs, tree = list(map(np.empty, shapes, kinds)), self._out_tree
            write = lambda: self._call(arrays, tree_unflatten(tree, outs))  # type: ignore # noqa: E731
            run_checked(write, outs, self.paths, self.name, again=not self.has_effects)
            return outs
        cast = self.settings.get("cast", False) or dtypes is not None
        checked = result_checker(self.name, self._out_tree, shapes, kinds, cast=cast)
        self.returned = self._call(arrays)
        return [np.array(array) for array in checked(self.returned)]

    def _call(self, operands: Operands, *leading: Any) -> Any:
        in_jax = self.settings.get("arrays") == "jax"
        args, kwargs = self._arguments(self._in_jax(operands) if in_jax else operands)
        begun = clock()
        try:
            return self.callback.host.current(*leading, *args, **kwargs)
        finally:
            self.durations.append(clock() - begun)

    def applied(self, operands: Sequence[Any]) -> list[Any]:
        """Call the callback, as JAX code does; return its floating-point results, flat."""
        self.pause()
        args, kwargs = self._arguments(self._in_jax(operands))
        return [y for y in tree_leaves(self.callback(*args, **kwargs)) if is_inexact(y)]

    def _in_jax(self, operands: Sequence[Any]) -> list[Any]:
        """Return operands as JAX arrays, and the data of keys as keys."""
        return [
            jax.numpy.asarray(x) if key is None else jax.random.wrap_key_data(x, impl=key)
            for x, key in zip(operands, self._keys, strict=True)
        ]

    def _arguments(self, operands: Sequence[Any]) -> tuple[Any, Any]:
        arrays = dict(zip(self._places, operands, strict=True))
        leaves = [arrays.get(n, leaf) for n, leaf in enumerate(self._leaves)]
        return tree_unflatten(self._in_tree, leaves)

    def operands_of(self, parameters: Iterable[str | int]) -> list[int]:
        """Return the operands of parameters of the host function, by name or position."""
        args, kwargs = tree_unflatten(self._in_tree, range(len(self._leaves)))
        by_name: dict[str, Any] = {}
        try:
            signature = signature_of(self.callback.host.current, self.leading)
            bound = signature.bind(*args, **kwargs)
            args, by_name = bound.args, bound.arguments
        except (TypeError, ValueError):  # it has no signature
            pass
        arguments: dict[str | int, Any] = {**by_name, **dict(enumerate(args))}
        leaves = tree_leaves([arguments.get(parameter) for parameter in parameters])
        return [n for n, place in enumerate(self._places) if place in leaves]

    @functools.cached_property
    def count(self) -> int:
        """How many values there are for each operand: few, if they take much memory."""
        sizes = [np.prod(y.shape) * y.dtype.itemsize for y in (*self.avals, *self.operands)]
        return 2 if sum(sizes) > _LARGE else 3

    @functools.cached_property
    def variants(self) -> list[list[np.ndarray]]:
        """For each operand `count` values that the host function accepts; first the given one."""
        variants = [[x] * self.count for x in self.operands]
        for group in one_by_one(range(len(self.operands))):
            for element in range(1, self.count):
                changed = list(self.operands)
                for n in group:
                    changed[n] = _changed(changed[n], element)
                if self.alone(changed) is not None:
                    for n in group:
                        variants[n][element] = changed[n]
        return variants

    def alone(self, operands: Operands) -> list[np.ndarray] | None:
        """Return the result of a single call with made-up values; None if it refuses them."""
        key = tuple(hash(x.tobytes()) for x in operands)
        if key not in self._alone:
            self._alone[key] = None
            try:
                self._alone[key] = self.run(operands)
            except ResultError as error:
                self.misfit = self.misfit or f"called with {self.shown(operands)}, {error}"
            except Exception:  # the values may be outside its domain
                pass
        return self._alone[key]

    def shown(self, operands: Operands) -> str:
        """Return ``args[0] = 0.5``: the first few values that differ from the given ones."""
        texts = [
            f"{name} = {np.array2string(x, threshold=8, edgeitems=2, separator=', ')}"
            for name, x, y in zip(self.names, operands, self.operands, strict=True)
            if not np.array_equal(x, y)
        ]
        return " and ".join(" ".join(text.split()) for text in texts[:3])


def _changed(array: np.ndarray, element: int) -> np.ndarray:
    """Return a value close by or closer to zero, so that most functions accept it."""
    kind = kind_of(array.dtype)
    if kind == "b":
        return ~array if element % 2 else array
    if kind == "i":
        whole = array if array.dtype.kind in "iu" else array.astype(np.int64)  # such as int4
        step = whole.dtype.type(element)
        is_high = whole > int(ml_dtypes.iinfo(array.dtype).max) - element
        return np.asarray(np.where(is_high, whole - step, whole + step).astype(array.dtype))
    with np.errstate(all="ignore"):  # signaling NaN
        if not array.any():  # all are 0
            return np.full_like(array, element / 4)
        return np.asarray((array * array.dtype.type(1 - element / 4)).astype(array.dtype))


def is_inexact(x: Any) -> bool:
    """Return whether a derivative may be by, or of, an array."""
    return jax.numpy.issubdtype(x.dtype, np.inexact)


def one_by_one(places: Sequence[int], alone: int = 4) -> list[list[int]]:
    """Group places: the first few alone, the others together."""
    rest = list(places[alone:])
    return [*([n] for n in places[:alone]), *([rest] if rest else [])]


def one_line(error: BaseException) -> str:
    """Return an error in one line, ``ValueError: no luck``."""
    return describe(error).strip().partition("\n")[0]


def difference(
    found: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    paths: Sequence[str],
    power: float = SAME,
    words: str = "{found}{at} instead of {expected}",
) -> str:
    """Describe the first element that differs; empty if there is none.

    Args:
        found: flat results.
        expected: the results to compare with.
        paths: the path of each result in its structure.
        power: floating-point numbers may differ by eps of the dtype to this power, relative to the
            largest one.
        words: the description; `at` is ``" at [1]"``, and empty for a scalar.
    """
    for x, y, path in zip(found, expected, paths, strict=True):
        wrong = ~close(x, y, power)
        if wrong.any():
            index = np.unravel_index(int(wrong.argmax()), x.shape)
            at = f"{path}{list(map(int, index))}" if index else path
            at = f" at {at}" if at else ""
            return words.format(found=str(x[index]), at=at, expected=str(y[index]))
    return ""


def close(x: np.ndarray, y: np.ndarray, power: float = SAME) -> np.ndarray:
    """Return which elements are equal, up to rounding errors of floating-point numbers."""
    with np.errstate(all="ignore"):  # infinities, and signaling NaN
        same = x == y
        if same.all() or kind_of(x.dtype) in ("b", "i"):
            return same
        eps = float(ml_dtypes.finfo(x.dtype).eps)
        x, y = wide(x), wide(y)
        sizes = np.abs(y)
        largest = sizes.max(initial=0.0, where=np.isfinite(sizes))
        return same | (np.abs(x - y) <= eps**power * largest) | (np.isnan(x) & np.isnan(y))


def wide(x: Any) -> np.ndarray:
    """Return an array in float64 or complex128."""
    x = np.asarray(x)
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
