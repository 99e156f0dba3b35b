"""Call machine code from Python, in eager code: one host call, on the calling thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax.tree_util import tree_unflatten

from ...recording import LoweredSite
from ..core import HostCallback
from . import _handler
from ._block import again_of, cause
from ._function import compiled_function
from ._interface import interface_of
from ._kernel import Kernel
from ._native import address_of

_BUFFER = _handler.SIZES + 1  # words of each buffer
_ALONE = np.zeros(_handler.LEVELS, np.int64)  # the block of a single call
_ALONE[[_handler.CALLS, _handler.INNER]] = 1


class _Frame:
    """A call frame like that of XLA, as far as a kernel reads it."""

    def __init__(self, lowered: LoweredSite) -> None:
        operands, results = lowered.host_avals()
        shapes = [aval.shape for aval in (*operands, *results)]
        ranks = np.array([len(shape) for shape in shapes], np.int64)
        self._sizes = np.array([size for shape in shapes for size in shape], np.int64)
        self._buffers = np.zeros((len(shapes), _BUFFER), np.int64)
        self._buffers[:, _handler.RANK] = ranks
        self._buffers[:, _handler.SIZES] = address_of(self._sizes) + 8 * (ranks.cumsum() - ranks)
        self._places = address_of(self._buffers) + 8 * _BUFFER * np.arange(len(shapes))
        self._words = np.zeros(_handler.RESULTS + 1, np.int64)
        self._words[_handler.ARGUMENTS] = address_of(self._places)
        self._words[_handler.RESULTS] = address_of(self._places[len(operands) :])
        self.address = address_of(self._words)

    def run(self, kernel: Kernel, operands: Sequence[Any], results: Sequence[np.ndarray]) -> int:
        """Run a kernel; return its status. It writes the results."""
        arrays = [*map(np.ascontiguousarray, operands), *results]
        self._buffers[:, _handler.DATA] = [x.__array_interface__["data"][0] for x in arrays]
        return kernel.call(self.address, address_of(_ALONE))


def writing_entry(
    callback: HostCallback, lowered: LoweredSite, *, repeats: bool, writes: bool = True
) -> Callable[[Any], Callable[[Sequence[Any], Sequence[np.ndarray]], None]]:
    """Return what turns the host function into a function of operands and of arrays to write to.

    Args:
        callback: the host function and its trees.
        lowered: the call site.
        repeats: whether it may be called again to find out why a call failed.
        writes: whether the function writes its results instead of returning them.

    Raises:
        TypeError: as in a compiled program, if numba cannot compile the function.
        ResultError: if what it returns does not match the declared result.
    """
    __tracebackhide__ = True
    interface = interface_of(callback, lowered, writes=writes, first=0)
    alone = tuple(dataclasses.replace(operand, inner=True) for operand in interface.operands)
    interface = dataclasses.replace(interface, operands=alone)
    if lowered.elements != 0:
        compiled_function(callback.host.current).kernel(interface)  # not an error of a host call
    again = again_of(callback, lowered, writes) if repeats else None
    frame = _Frame(lowered)

    def entry(function: Any) -> Any:
        kernel = compiled_function(function).kernel(interface)

        def call(operands: Sequence[Any], results: Sequence[np.ndarray]) -> None:
            status = frame.run(kernel, operands, results)
            if status:
                raise cause(callback.host.name, frame.address, operands, status, again)

        return call

    return entry


def returning_entry(
    callback: HostCallback, lowered: LoweredSite, *, repeats: bool
) -> Callable[[Any], Callable[..., Any]]:
    """As `writing_entry`, for a function of operands that returns a tree of arrays."""
    __tracebackhide__ = True
    writing = writing_entry(callback, lowered, repeats=repeats, writes=False)
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
