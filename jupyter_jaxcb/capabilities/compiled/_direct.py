"""Call machine code from Python, in eager code: one host call, on the calling thread."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from jax.tree_util import tree_unflatten

from ...recording import LoweredSite
from ...stack.call import HostCallback
from . import _handler
from ._block import again_of, cause
from ._function import compiled_function
from ._interface import Interface, interface_of, writes_results
from ._kernel import Kernel
from ._native import address_of

_BUFFER = _handler.SIZES + 1  # words of each buffer
_ALONE = np.zeros(_handler.LEVELS, np.int64)  # the block of a single call
_ALONE[[_handler.CALLS, _handler.INNER]] = 1
_ALONE_ADDRESS = address_of(_ALONE)


class _Frame:
    """A call frame like that of XLA, as far as a kernel reads it. One call at a time uses it."""

    def __init__(self, operands: int, ranks: Sequence[int]) -> None:
        ends = np.cumsum(ranks, dtype=np.int64)
        self._sizes = np.zeros(sum(ranks), np.int64)
        self._buffers = np.zeros((len(ranks), _BUFFER), np.int64)
        self._buffers[:, _handler.RANK] = ranks
        self._buffers[:, _handler.SIZES] = address_of(self._sizes) + 8 * (ends - ranks)
        self._places = address_of(self._buffers) + 8 * _BUFFER * np.arange(len(ranks))
        self._words = np.zeros(_handler.RESULTS + 1, np.int64)
        self._words[_handler.ARGUMENTS] = address_of(self._places)
        self._words[_handler.RESULTS] = address_of(self._places[operands:])
        self.address = address_of(self._words)

    def run(self, kernel: Kernel, operands: Sequence[Any], results: Sequence[np.ndarray]) -> int:
        """Run a kernel; return its status. It writes the results."""
        arrays = [*map(np.ascontiguousarray, operands), *results]
        shapes = [np.shape(x) for x in (*operands, *results)]  # it adds an axis to numbers
        self._sizes[:] = [size for shape in shapes for size in shape]
        self._buffers[:, _handler.DATA] = [x.__array_interface__["data"][0] for x in arrays]
        return kernel.call(self.address, _ALONE_ADDRESS)


class DirectCalls:
    """What eager calls of a compiled function need, for arguments of certain ranks and dtypes."""

    def __init__(self, kernel: Kernel, interface: Interface) -> None:
        self.kernel = kernel
        self._operands = len(interface.operands)
        self._ranks = [array.rank for array in (*interface.operands, *interface.results)]
        self._frames: list[_Frame] = []  # that no call uses

    @contextlib.contextmanager
    def frame(self) -> Iterator[_Frame]:
        """Lend a frame to a call: another thread, or the function itself, may call meanwhile."""
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = _Frame(self._operands, self._ranks)
        try:
            yield frame
        finally:
            self._frames.append(frame)


def writing_entry(
    callback: HostCallback, lowered: LoweredSite
) -> Callable[[Any], Callable[[Sequence[Any], Sequence[np.ndarray]], None]]:
    """Return what turns the host function into a function of operands and of arrays to write to.

    Args:
        callback: the host function and its trees.
        lowered: the call site.

    Raises:
        TypeError: as in a compiled program, if numba cannot compile the function.
        ResultError: if what it returns does not match the declared result.
    """
    __tracebackhide__ = True
    if lowered.elements != 0:
        _direct_calls(callback.host.current, callback, lowered)  # not an error of a call
    again = again_of(callback, lowered)

    def entry(function: Any) -> Any:
        direct = _direct_calls(function, callback, lowered)

        def call(operands: Sequence[Any], results: Sequence[np.ndarray]) -> None:
            with direct.frame() as frame:
                status = frame.run(direct.kernel, operands, results)
                if status:
                    raise cause(callback.host.name, frame.address, operands, status, again)

        return call

    return entry


def _direct_calls(function: Any, callback: HostCallback, lowered: LoweredSite) -> DirectCalls:
    """Return what a call of `function` needs, computed once for each set of ranks and dtypes."""
    __tracebackhide__ = True
    compiled = compiled_function(function)
    arrays = [[(x.dtype, len(x.shape)) for x in avals] for avals in lowered.host_avals()]
    key = (
        callback.in_tree, callback.static, callback.out_tree, callback.options.cast,
        writes_results(callback),
        *map(tuple, arrays),
    )  # fmt: skip
    found = compiled.direct.get(key)
    if found is None:
        interface = interface_of(callback, lowered).unmasked()
        made = DirectCalls(compiled.kernel(interface), interface)
        found = compiled.direct.setdefault(key, made)
    return found


def returning_entry(
    callback: HostCallback, lowered: LoweredSite
) -> Callable[[Any], Callable[..., Any]]:
    """As `writing_entry`, for a function of operands that returns a tree of arrays."""
    __tracebackhide__ = True
    writing = writing_entry(callback, lowered)
    tree: Any = callback.out_tree
    _, declared = lowered.host_avals()

    def entry(function: Any) -> Any:
        write = writing(function)

        def call(*operands: Any) -> Any:
            results = [np.empty(*aval) for aval in declared]
            write(operands, results)
            return None if tree is None else tree_unflatten(tree, results)

        return call

    return entry
