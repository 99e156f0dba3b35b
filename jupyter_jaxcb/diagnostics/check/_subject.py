"""Run the host function of a callback repeatedly on given arguments."""

from __future__ import annotations

import contextlib
import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

from ... import jax_compat
from ...capabilities.linear import CallTree
from ...register import Callback
from ...stack.call import Static, is_array, without_leading
from ...stack.errors import describe
from ...stack.flavors.buffer import run_checked
from ...stack.results import leaf_paths, result_avals, result_checker
from ._captured_output import printed

SECONDS = 10.0  # no run begins after this time
ALONE = 4  # arguments that are checked one by one; the others together
LARGE = 1 << 22  # bytes of arguments and results from which on few copies are made
clock = time.monotonic


class OutOfTime(BaseException):
    """The runs so far took too long. Not an `Exception`, which a host function may raise."""


class Subject:
    """The callback that is checked, with its arguments.

    Attributes:
        callback: the callback.
        name: its name.
        tolerance: the error of derivatives that is allowed, relative to slope and result.
        operands: the arrays among the leaves of the arguments, as the host function gets them.
        names: the names of the operands, ``args[0]['w']``.
        unbatched: whether each operand is a Python number among arrays, which vmap does not map.
        leading: number of parameters of the host function before the arguments (the output).
        avals: the declared results, flat.
        paths: the paths of the declared results in their structure.
        printed: the beginning of its printed output.
    """

    def __init__(
        self,
        callback: Callback,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        tolerance: float = 0.0,
    ) -> None:
        self.callback, self.name, self.tolerance = callback, callback.host.name, tolerance
        self._begun, self._runs, self._running = clock(), 0, 0.0
        leaves, self._in_tree = tree_flatten((args, kwargs))
        self._static = {n: leaf for n, leaf in enumerate(leaves) if not is_array(leaf)}
        self.places = [n for n in range(len(leaves)) if n not in self._static]
        self.operands = [_as_host_gets(leaves[n]) for n in self.places]
        dtypes = [jax.typeof(leaves[n]).dtype for n in self.places]
        self._keys = [jax_compat.key_implementation(dtype) for dtype in dtypes]
        numbers = [type(leaves[n]) in _NUMBERS for n in self.places]
        self.unbatched = [number and not all(numbers) for number in numbers]
        paths, _ = tree_flatten_with_path((args, kwargs))
        self.names = [_words(keystr(paths[n][0])) for n in self.places]
        self.leading = 1 if callback.flavor == "buffer" else 0
        self.avals, self._out_tree = (), None
        if callback.returned is not None:
            function = without_leading(callback.host.current, self.leading)
            self.avals, self._out_tree = result_avals(callback.returned, function, args, kwargs)
            self.paths = leaf_paths(tree_unflatten(self._out_tree, self.avals))
        self.printed = ""

    @property
    def is_large(self) -> bool:
        """Whether batches and copies of its arrays would take much memory."""
        results = sum(int(np.prod(y.shape)) * np.dtype(y.dtype).itemsize for y in self.avals)
        return sum(array.nbytes for array in self.operands) + results > LARGE

    def pause(self) -> None:
        """Check the time between two runs.

        Raises:
            OutOfTime: the runs so far took too long.
        """
        if self._runs and clock() - self._begun > SECONDS:
            each = self._running / self._runs
            raise OutOfTime(
                f"no time left after {SECONDS:.0f} s, each run takes {each:.2g} s; pass arguments "
                "for which it is quicker"
            )

    @property
    def seconds_each(self) -> float:
        """How long a run took on average."""
        return self._running / max(self._runs, 1)

    @property
    def settings(self) -> dict[str, Any]:
        """The options that it was registered with."""
        return self.callback.settings

    def run(
        self,
        operands: Sequence[np.ndarray] | None = None,
        *,
        axes: tuple[int, ...] = (),
        dtypes: Sequence[Any] | None = None,
        rows: int | None = None,
        writable: bool = False,
        fresh: bool = False,
    ) -> list[np.ndarray]:
        """Make one host call and check its result against the declared one.

        Args:
            operands: replace the operands of the subject.
            axes: batch axes that lead each declared shape.
            dtypes: replace the declared dtypes.
            rows: replace the size of the first axis of each declared shape.
            writable: pass the arrays themselves, writable, instead of read-only copies.
            fresh: the arrays were made for this run and are passed without a copy.

        Returns:
            Copies of the results, flat.

        Raises:
            Exception: any error of the host function, or a `ResultError`.
            OutOfTime: the runs so far took too long.
        """
        self.pause()
        given = list(self.operands if operands is None else operands)
        given = given if writable else [_locked(array, fresh=fresh) for array in given]
        shapes = [(*axes, *aval.shape) for aval in self.avals]
        shapes = shapes if rows is None else [(rows, *shape[1:]) for shape in shapes]
        kinds = [np.dtype(d) for d in (dtypes or [aval.dtype for aval in self.avals])]
        if self.leading:
            return self._write(given, shapes, kinds)
        cast = self.settings.get("cast", False) or dtypes is not None
        check = result_checker(self.name, self._out_tree, shapes, kinds, cast=cast)
        with self.quiet():
            result = self._call(given)
        return [np.array(array) for array in check(result)]

    def call(self) -> None:
        """Make one host call and ignore its result."""
        if self.leading:
            self.run()
        else:
            self.pause()
            with self.quiet():
                self._call([_locked(array, fresh=False) for array in self.operands])

    def _call(self, operands: Sequence[np.ndarray], *leading: Any) -> Any:
        if self.settings.get("arrays") == "jax":
            operands = self._in_jax(operands)
        args, kwargs = self._arguments(operands)
        begun = clock()
        try:
            return self.callback.host.current(*leading, *args, **kwargs)
        finally:
            self._runs, self._running = self._runs + 1, self._running + clock() - begun

    def _in_jax(self, operands: Sequence[Any]) -> list[Any]:
        """Return operands as JAX arrays, and key data as keys."""
        arrays = map(jax.numpy.asarray, operands)
        return [
            x if key is None else jax.random.wrap_key_data(x, impl=key)
            for x, key in zip(arrays, self._keys, strict=True)
        ]

    def _arguments(self, operands: Sequence[Any]) -> tuple[Any, Any]:
        arrays = dict(zip(self.places, operands, strict=True))
        leaves = [arrays.get(n, self._static.get(n)) for n in range(self._in_tree.num_leaves)]
        return tree_unflatten(self._in_tree, leaves)

    def differentiable(self) -> Callable[..., list[Any]]:
        """Return a function of the operands that calls the callback, for differentiation.

        It returns the floating-point results.
        """

        def call(*operands: Any) -> list[Any]:
            args, kwargs = self._arguments(self._in_jax(operands))
            results = jax.tree.leaves(self.callback(*args, **kwargs))
            return [y for y in results if jax.numpy.issubdtype(y.dtype, np.inexact)]

        return call

    @property
    def arguments_of_call(self) -> CallTree:
        """Where its operands are in the arguments of the call."""
        return CallTree(self._in_tree, Static(self._static))

    def callback_result(self) -> Any:
        """Call the callback on its arguments, and return what it returns, in its structure."""
        args, kwargs = self._arguments(self._in_jax(self.operands))
        return self.callback(*args, **kwargs)

    def argument_of(self, place: int) -> int | None:
        """Return the positional argument that an operand belongs to; None: a keyword argument."""
        args, _ = tree_unflatten(self._in_tree, range(self._in_tree.num_leaves))
        for number, argument in enumerate(args):
            if self.places[place] in jax.tree.leaves(argument):
                return number
        return None

    def is_differentiated_by(self, place: int) -> bool:
        """Return whether the rule of the callback, if it has one, covers an operand."""
        if self.callback.rule != "gradient":
            return self.argument_of(place) not in self.callback.not_differentiated
        args, kwargs = tree_unflatten(self._in_tree, range(self._in_tree.num_leaves))
        names = inspect.signature(self.callback.host.current).bind(*args, **kwargs).arguments
        of_gradient = [names.get(name) for name in self.settings["gradient"].split(", ")]
        return self.places[place] in jax.tree.leaves(of_gradient)

    @property
    def values(self) -> int:
        """How many of its results are its value; the others are the gradient that it returns."""
        if self.callback.rule != "gradient":
            return len(self.avals)
        return len(jax.tree.leaves(tree_unflatten(self._out_tree, self.avals)[0]))

    def _write(
        self, operands: Sequence[Any], shapes: Sequence[Any], kinds: Sequence[Any]
    ) -> list[np.ndarray]:
        outs = [np.empty(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
        tree: Any = self._out_tree

        def run() -> None:
            with self.quiet():
                self._call(operands, tree_unflatten(tree, outs))

        run_checked(run, outs, self.paths, self.name, not self.settings.get("has_side_effect"))
        return outs

    @contextlib.contextmanager
    def quiet(self) -> Iterator[None]:
        """Hide what a pure function prints, because it is run many times."""
        if self.callback.flavor not in ("pure", "buffer"):
            yield
            return
        with printed() as text:
            try:
                yield
            finally:
                if not self.printed.strip():
                    self.printed = "".join(text)[:_SHOWN]


def one_by_one(places: Sequence[int]) -> list[list[int]]:
    """Group places: the first few alone, the others together."""
    alone, rest = places[:ALONE], list(places[ALONE:])
    return [*([n] for n in alone), *([rest] if rest else [])]


def one_line(error: Exception) -> str:
    """Return an error in one line, ``ValueError: no luck``."""
    return describe(error).strip().partition("\n")[0]


_SHOWN = 1000  # characters kept of its printed output
_NUMBERS = (bool, int, float, complex)


def _as_host_gets(x: Any) -> np.ndarray:
    if jax_compat.key_implementation(jax.typeof(x).dtype) is not None:
        x = jax.random.key_data(x)
    return np.array(x, jax.typeof(x).dtype)


def _locked(array: np.ndarray, *, fresh: bool) -> np.ndarray:
    """Return a read-only copy, as host functions get it, or a `fresh` array itself."""
    copy = array if fresh else array.copy()
    copy.flags.writeable = False
    return copy


def _words(path: str) -> str:
    """Turn ``[0][0]['w']`` into ``args[0]['w']``, ``[1]['scale']`` into ``kwargs['scale']``."""
    return f"args{path[3:]}" if path.startswith("[0]") else f"kwargs{path[3:]}"
