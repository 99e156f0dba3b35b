"""A registered callback and arguments, to be run on the host again and again."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten, tree_flatten_with_path, tree_unflatten

from ...stack.core import describe, is_array, without_leading
from ...stack.dispatch import run_checked
from ...stack.register import BufferCallback, Callback
from ...stack.results import leaf_paths, result_avals, result_checker
from ._captured_output import printed

SECONDS = 10.0  # after which no run begins any more
ALONE = 4  # arguments that are looked at one by one; the others together
LARGE = 1 << 22  # bytes of arguments and results, of which few copies are made
clock = time.monotonic


class OutOfTime(BaseException):
    """The runs so far took too long; no Exception, which a host function may raise."""


class Subject:
    """What is checked: the host function, the arguments as it gets them, what it declares.

    Attributes:
        callback: that is checked.
        name: of it.
        operands: the arrays among the leaves of the arguments, as the host function gets them.
        names: of these, ``args[0]['w']``.
        shared: which of these no vmap maps: numbers of Python's among arrays.
        leading: parameters of the host function before the arguments: the output.
        avals: declared, flat.
        paths: of these in the declared structure.
        printed: the beginning of what it has printed so far.
    """

    def __init__(self, callback: Callback, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.callback, self.name = callback, callback.host.name
        self._begun, self._runs, self._running = clock(), 0, 0.0
        leaves, self._in_tree = tree_flatten((args, kwargs))
        self._static = {n: leaf for n, leaf in enumerate(leaves) if not is_array(leaf)}
        self.places = [n for n in range(len(leaves)) if n not in self._static]
        self.operands = [_as_host_gets(leaves[n]) for n in self.places]
        numbers = [type(leaves[n]) in _NUMBERS for n in self.places]
        self.shared = [number and not all(numbers) for number in numbers]
        paths, _ = tree_flatten_with_path((args, kwargs))
        self.names = [_words(keystr(paths[n][0])) for n in self.places]
        self.leading = 1 if isinstance(callback, BufferCallback) else 0
        self.avals, self._out_tree = (), None
        if callback.declared is not None:
            function = without_leading(callback.host.current, self.leading)
            self.avals, self._out_tree = result_avals(callback.declared, function, args, kwargs)
            self.paths = leaf_paths(tree_unflatten(self._out_tree, self.avals))
        self.printed = ""

    @property
    def is_large(self) -> bool:
        """Whether batches and copies of it would take much memory."""
        results = sum(int(np.prod(y.shape)) * np.dtype(y.dtype).itemsize for y in self.avals)
        return sum(array.nbytes for array in self.operands) + results > LARGE

    def pause(self) -> None:
        """Between two runs.

        Raises:
            OutOfTime: those before took too long.
        """
        if self._runs and clock() - self._begun > SECONDS:
            each = self._running / self._runs
            raise OutOfTime(f"{SECONDS:.0f} s are over, a run takes {each:.2g} s")

    @property
    def settings(self) -> dict[str, Any]:
        """How it was registered."""
        return self.callback.settings

    def run(
        self,
        operands: Sequence[np.ndarray] | None = None,
        *,
        axes: tuple[int, ...] = (),
        dtypes: Sequence[Any] | None = None,
        writable: bool = False,
        fresh: bool = False,
    ) -> list[np.ndarray]:
        """One host call: its results, copied and checked against what was declared.

        Args:
            operands: instead of those of the subject.
            axes: that lead each declared shape.
            dtypes: instead of those declared.
            writable: hand over the arrays themselves, to be written to; else read-only copies.
            fresh: the arrays were made for this run: they are handed over without a copy.

        Raises:
            Exception: what the host function raises, or a `ResultError`.
            OutOfTime: the runs before took too long.
        """
        self.pause()
        given = list(self.operands if operands is None else operands)
        given = given if writable else [_locked(array, fresh=fresh) for array in given]
        shapes = [(*axes, *aval.shape) for aval in self.avals]
        kinds = [np.dtype(d) for d in (dtypes or [aval.dtype for aval in self.avals])]
        if isinstance(self.callback, BufferCallback):
            return self._write(given, shapes, kinds)
        cast = self.settings.get("cast", False) or dtypes is not None
        check = result_checker(self.name, self._out_tree, shapes, kinds, cast=cast)
        with self.quiet():
            answer = self._call(given)
        return [np.array(array) for array in check(answer)]

    def call(self) -> None:
        """One host call, whose answer is dropped."""
        if isinstance(self.callback, BufferCallback):
            self.run()
        else:
            self.pause()
            with self.quiet():
                self._call([_locked(array, fresh=False) for array in self.operands])

    def _call(self, operands: Sequence[np.ndarray], *leading: Any) -> Any:
        if self.settings.get("arrays") == "jax":
            operands = [jax.device_put(array) for array in operands]  # type: ignore[misc]
        args, kwargs = self._arguments(operands)
        begun = clock()
        try:
            return self.callback.host.current(*leading, *args, **kwargs)
        finally:
            self._runs, self._running = self._runs + 1, self._running + clock() - begun

    def _arguments(self, operands: Sequence[Any]) -> tuple[Any, Any]:
        arrays = dict(zip(self.places, operands, strict=True))
        leaves = [arrays.get(n, self._static.get(n)) for n in range(self._in_tree.num_leaves)]
        return tree_unflatten(self._in_tree, leaves)

    def differentiable(self) -> Callable[..., list[Any]]:
        """The callback as JAX code calls it, of its operands; its results with derivatives."""

        def call(*operands: Any) -> list[Any]:
            args, kwargs = self._arguments([*map(jax.numpy.asarray, operands)])
            results = jax.tree.leaves(self.callback(*args, **kwargs))
            return [y for y in results if jax.numpy.issubdtype(y.dtype, np.inexact)]

        return call

    def argument_of(self, place: int) -> int | None:
        """Which positional argument an operand belongs to; None: to one by keyword."""
        args, _ = tree_unflatten(self._in_tree, range(self._in_tree.num_leaves))
        for number, argument in enumerate(args):
            if self.places[place] in jax.tree.leaves(argument):
                return number
        return None

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
        """Keeps what a pure function prints to itself: it is run many times."""
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
    """The first few alone, the others together."""
    alone, rest = places[:ALONE], list(places[ALONE:])
    return [*([n] for n in alone), *([rest] if rest else [])]


def told(error: Exception) -> str:
    """``ValueError: no luck``: an error in a line."""
    return describe(error).strip().partition("\n")[0]


_SHOWN = 1000  # characters of what it prints, of which the first line is told
_NUMBERS = (bool, int, float, complex)


def _as_host_gets(x: Any) -> np.ndarray:
    __tracebackhide__ = True
    if jax.numpy.issubdtype(jax.typeof(x).dtype, jax.dtypes.extended):
        raise TypeError(
            f"cannot check with a {jax.typeof(x).dtype}: NumPy has no such numbers. Take the key's "
            "data as argument, jax.random.key_data(key), and wrap it in the function."
        )
    return np.array(x, jax.typeof(x).dtype)


def _locked(array: np.ndarray, *, fresh: bool) -> np.ndarray:
    """A read-only copy, as host functions get; `array` itself if it was made for them."""
    copy = array if fresh else array.copy()
    copy.flags.writeable = False
    return copy


def _words(path: str) -> str:
    """``args[0]['w']`` of ``[0][0]['w']``, ``kwargs['scale']`` of ``[1]['scale']``."""
    return f"args{path[3:]}" if path.startswith("[0]") else f"kwargs{path[3:]}"
