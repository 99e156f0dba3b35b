"""A call site of a compiled callback in one program: what its custom call refers to."""

from __future__ import annotations

import ctypes
import functools
import math
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import numpy as np
from jax.tree_util import tree_unflatten

from ...recording import COMPILED_THREAD, LoweredSite, VmapLevel, active
from ...stack.call import HostCallback, HostFunction
from ...stack.dispatch import CallElsewhere, finds_calls, parts_of_crossing, to_arguments
from ...stack.errors import add_note, describe, is_a
from ...stack.interrupt import report_failure
from ...stack.results import ResultError
from . import _failure, _handler, _log
from ._failure import word
from ._function import compiled_function
from ._interface import Interface, interface_of, writes_results
from ._native import address_of

Again = Callable[[Sequence[np.ndarray]], None]
_REASONS = {
    _handler.NOT_FITTING: (
        "an integer that does not fit the declared dtype. Compiled integers have 64 bits, where "
        "NumPy's keep the width of the arguments: convert the result, or pass cast=True."
    ),
    _handler.OTHER_SHAPE: "an array of another shape than declared. Correct one of them.",
}


class Block:
    """Memory that machine code reads, and the Python side of it.

    A program keeps its blocks alive as its callbacks. They are never called from Python.

    Args:
        host: the host function.
        interface: what its machine code depends on.
        lowered: the call site.
        again: calls the Python function with the arguments of one host call and checks its result,
            to find out why a call failed; None if that would repeat a side effect.

    Attributes:
        target: the name of the custom call.
        address: the address of the words.
    """

    target = _handler.TARGET

    def __init__(
        self, host: HostFunction, interface: Interface, lowered: LoweredSite, again: Again | None
    ) -> None:
        self.host = host
        self.lowered = lowered
        self._interface = interface
        self._again = again
        looped = [level for level in lowered.levels if level.looped]
        self._outermost_first = looped[::-1]
        self._looped = [level.size for level in self._outermost_first]
        # The shape of the mask, if there is one, with 1 for a vmap that does not map over it.
        self._mask_shape = [
            level.size if level.batched[-1] else 1 for level in self._outermost_first
        ]
        self._kernels: list[Any] = []  # a call may be running in one that was replaced
        self._problem: BaseException | None = None
        self._bindings = 0  # how often the function was replaced
        self.words = np.array([*_head(lowered, looped), *_loops(lowered, looped)], np.int64)
        self.address = address_of(self.words)
        host.followers.add(self)
        self.resolve()
        number = self.words[_handler.NUMBER] = _log.log.enlist(lowered, self.words)
        _failure.sites[self.address] = self
        last = weakref.finalize(self, _gone, weakref.ref(host), self.words, number)
        last.atexit = False

    def __call__(self, *arrays: Any) -> Any:
        raise TypeError("XLA calls the machine code of a compiled callback, and not its block")

    def rebound(self) -> None:
        """Compile the new function before the next call."""
        self._bindings += 1
        self.words[_handler.KERNEL] = 0

    def resolve(self) -> int:
        """Return the address of the kernel for the current function, compiled if necessary."""
        while True:
            bindings, host = self._bindings, self.host
            version, function = host.version, host.current
            try:
                kernel = compiled_function(function).kernel(self._interface)
            except BaseException as error:
                self._problem = error
                raise
            if kernel not in self._kernels:
                self._kernels.append(kernel)
            self.words[_handler.VERSION] = version
            self.words[_handler.KERNEL] = kernel.address
            if bindings == self._bindings:  # else a cell has replaced it meanwhile
                return kernel.address

    def failed(self, frame: int, status: int, start: int) -> BaseException:
        """Find out why a call failed; return the error to give to XLA.

        Args:
            frame: the address of the call frame.
            status: what the kernel returned.
            start: the cycle counter before the call; 0 if it is not recorded.
        """
        lowered = self.lowered
        every, needed = self._operands(frame), self._needed(frame)
        at = status >> _handler.WHY_BITS
        if status == _handler.NOT_COMPILED:
            at = int(needed[0]) if len(needed) else 0
        operands = self._element(every, at)
        if status == _handler.NOT_COMPILED:
            error: Any = self._problem or KeyboardInterrupt()
        else:
            error = cause(self.host.name, frame, operands, status, self._again)
        version = int(self.words[_handler.VERSION])
        _log.failed(lowered, version, operands, needed, at, start, describe(error))
        element = None if lowered.elements is None else at
        varies = lowered.calls_each_time is None  # then the kernel has counted this call
        number = self._made() if varies else self._first_number(len(needed)) + at
        return report_failure(error, lowered, number, element, operands)

    def running(self) -> CallElsewhere | None:
        """Return the first call of a recorded crossing that machine code is in now, if any."""
        recorder, since = active(), int(self.words[_handler.SINCE])
        if recorder is None or not since:
            return None
        start = min(_log.log.time(since, recorder), recorder.clock())
        names = {"lowered": self.lowered, "host": self.host, "recorder": recorder}
        number = self._first_number(int(self.words[_handler.ADDED]))
        return CallElsewhere(names, -1, number, COMPILED_THREAD, start, [], 0, 0)

    def _made(self) -> int:
        """Return how many calls of the host function have been started."""
        return self.host.calls + sum(block.calls() for block in list(self.host.followers))

    def _first_number(self, calls: int) -> int:
        """Return the number of the first of the last `calls` calls."""
        return max(self._made() - calls, 0) + 1

    def note(self, frame: int, version: int, start: int, end: int) -> None:
        """Record a crossing with a mask, by the cycle counter before and after its calls."""
        _log.made(self.lowered, self._needed(frame), version, start, end)

    def reported(self, error: BaseException) -> BaseException:
        """Report an error beside the host calls; return the one to give to XLA."""
        return report_failure(error, self.lowered, self.host.calls)

    def calls(self) -> int:
        """Return how many calls of its host function this call site has started."""
        return int(self.words[_handler.MADE])

    def _operands(self, frame: int) -> list[np.ndarray]:
        """Copy the operands that host calls get."""
        return [self._operand(frame, n) for n in range(len(self.lowered.passed))]

    def _operand(self, frame: int, number: int) -> np.ndarray:
        return _copied(self._buffer(frame, number), self.lowered.operands[number].dtype)

    def _buffer(self, frame: int, number: int) -> int:
        """Return the address of an XLA_FFI_Buffer."""
        return word(word(frame, _handler.ARGUMENTS), number + self._interface.first)

    def _element(self, operands: list[np.ndarray], at: int) -> list[np.ndarray]:
        """Return the arguments of one host call."""
        index = np.unravel_index(at, self._looped) if self._looped else ()
        places = list(zip(index, self._outermost_first, strict=True))
        return [
            x[tuple(i for i, level in places if level.batched[n])] for n, x in enumerate(operands)
        ]

    def _needed(self, frame: int) -> np.ndarray:
        """Return the batch elements for which host calls are made; 0 is the one without a batch."""
        calls = self.lowered.calls_each_time
        if calls is not None:
            return np.arange(calls, dtype=np.int32)
        data = word(self._buffer(frame, len(self.lowered.operands) - 1), _handler.DATA)
        mask = np.frombuffer(ctypes.string_at(data, math.prod(self._mask_shape)), bool)
        if self._mask_shape != self._looped:
            mask = np.broadcast_to(mask.reshape(self._mask_shape), self._looped)
        return np.flatnonzero(mask).astype(np.int32)


def _gone(host: weakref.ref[HostFunction], words: np.ndarray, number: int) -> None:
    """Keep what is counted of a block whose program is gone."""
    called = host()
    if called is not None:
        called.calls += int(words[_handler.MADE])
    _log.log.gone(number)


@finds_calls
def calls_of_machine_code(
    frames: Mapping[int, FrameType], names: Mapping[int | None, str]
) -> Iterator[CallElsewhere]:
    """Yield the recorded calls that machine code is in; it has no Python frames."""
    found = (block.running() for block in list(_failure.sites.values()))
    yield from (call for call in found if call is not None)


def block_of(callback: HostCallback, lowered: LoweredSite, *, ordered: bool) -> Block:
    """Return the block of a call site.

    Args:
        callback: the host function and its trees.
        lowered: the call site.
        ordered: whether XLA passes a token in front of the operands.
    """
    interface = interface_of(callback, lowered, first=int(ordered))
    return Block(callback.host, interface, lowered, again_of(callback, lowered))


def cause(
    name: str, frame: int, operands: Sequence[np.ndarray], status: int, again: Again | None
) -> BaseException:
    """Return the exception of a host call that failed.

    A function without side effects is called again in Python, for its traceback.

    Args:
        name: the name of the function.
        frame: the address of the call frame.
        operands: the arguments of that host call.
        status: what the kernel returned.
        again: see `Block`.
    """
    why, raised = status & (1 << _handler.WHY_BITS) - 1, _failure.kept.pop(frame, None)
    in_python = "does not"
    try:
        if again is not None:
            with np.errstate(all="ignore"):  # compiled code does not warn either
                again(operands)
    except BaseException as error:
        if why == _handler.RAISED or is_a(error, ResultError) or not is_a(error, Exception):
            return error
        in_python = f"raises {describe(error)}"
    if why != _handler.RAISED:
        refused = ResultError(f"the compiled {name} returned {_REASONS[why]}")
        if again is not None:
            add_note(refused, f"the same call in Python {in_python}")
        return refused
    if raised is None:
        return RuntimeError(f"the compiled {name} raised an exception that numba did not keep")
    if again is not None:
        add_note(raised, f"the compiled {name} raised it; the same call in Python does not")
    return raised


def again_of(callback: HostCallback, lowered: LoweredSite) -> Again | None:
    """Return what calls the Python function, see `Block`."""
    may_repeat = callback.options.may_repeat
    return functools.partial(_call_python, callback, lowered) if may_repeat else None


def _call_python(
    callback: HostCallback, lowered: LoweredSite, operands: Sequence[np.ndarray]
) -> None:
    """Call the Python function, and check its result."""
    function = getattr(callback.host.current, "py_func", callback.host.current)
    _, results = lowered.host_avals()
    dtypes = [np.dtype(aval.dtype) for aval in results]
    if writes_results(callback):
        outs = [np.zeros(*aval) for aval in results]
        args, kwargs = to_arguments(callback)(operands)
        out_tree: Any = callback.out_tree
        function(tree_unflatten(out_tree, outs), *args, **kwargs)
        return
    parts = parts_of_crossing(callback, lowered, [x.dtype for x in operands], dtypes)
    parts.check(parts.adapt(function)(*operands))


def _head(lowered: LoweredSite, looped: Sequence[VmapLevel]) -> list[int]:
    """Return the words of a block up to `_handler.LEVELS`."""
    words = [0] * _handler.LEVELS
    words[_handler.LOG : _handler.LEVELS] = _handler.ADDRESSES
    words[_handler.CALLS] = 1 if lowered.elements is None else lowered.elements
    varies = lowered.calls_each_time is None
    words[_handler.ADDED] = 0 if varies else words[_handler.CALLS]
    words[_handler.NOTE] = _failure.NOTE if varies else 0
    words[_handler.INNER] = looped[0].size if looped else 1
    words[_handler.OUTER_LEVELS] = max(len(looped) - 1, 0)
    return words


def _loops(lowered: LoweredSite, looped: Sequence[VmapLevel]) -> Iterator[int]:
    """Yield the size of each looped vmap but the innermost, and how far each array moves in it.

    Distances are in batch elements: numbers of arguments of one host call.
    """
    if not looped:
        return
    everywhere = [True] * len(lowered.results)
    batched = [[*level.batched, *everywhere] for level in looped]
    steps = [level.size if on else 1 for level in looped[:1] for on in batched[0]]
    for level, own in zip(looped[1:], batched[1:], strict=True):
        yield level.size
        yield from (step if on else 0 for step, on in zip(steps, own, strict=True))
        steps = [step * (level.size if on else 1) for step, on in zip(steps, own, strict=True)]


def _copied(buffer: int, dtype: str) -> np.ndarray:
    """Copy an operand."""
    sizes = word(buffer, _handler.SIZES)
    shape = [word(sizes, axis) for axis in range(word(buffer, _handler.RANK))]
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    data = ctypes.string_at(word(buffer, _handler.DATA), count) if count else b""
    return np.frombuffer(data, dtype).reshape(shape)
