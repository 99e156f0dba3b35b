"""What a host function can ask about the call that it is in.

Nothing is prepared for the question: the answer is in the frames of the functions that make the
call. `jupyter_jaxcb` registers those of its own process.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import NamedTuple, TypeVar

import numpy as np

Numbers = Sequence[int] | np.ndarray  # row-major numbers of batch elements


@dataclasses.dataclass(frozen=True)
class CallInfo:
    """One host call, as `call_info` returns it.

    Attributes:
        callback: the name of the host function.
        flavor: the name of the flavor: ``"pure"``, ``"io"``, ``"debug"``, ``"buffer"``, ``"tap"``.
        file: the file of the call site, as Python names it.
        line: its line, from 1.
        program: the name of the compiled program, ``"jit_f"``; None for an eager call.
        call: the number of the call among those of the host function, from 1. Approximate if
            several threads make its calls at once.
        shard: the number of the shard that the arguments are, from 0, in the order of the mesh;
            None if the call is not one of several that devices make with their shards.
        device: the device that calls, ``"cpu:3"``; empty if it is unknown, as for eager calls.
        batch: the sizes of the vmaps that map an argument of the call, outermost first.
        axis_names: for each of them the ``axis_name`` or ``spmd_axis_name``; None without one.

    >>> import jupyter_jaxcb as jaxcb
    >>> @jaxcb.debug
    ... def log(x):
    ...     info = jaxcb.call_info()
    ...     print(info.callback, info.flavor, info.call, info.program)
    >>> log(1.0)
    log debug 1 None
    """

    callback: str
    flavor: str
    file: str
    line: int
    program: str | None
    call: int
    shard: int | None
    device: str
    batch: tuple[int, ...]
    axis_names: tuple[str | None, ...]
    _numbers: Numbers = dataclasses.field(repr=False, compare=False)

    @property
    def index(self) -> tuple[int, ...] | None:
        """The index of the batch element, one number per vmap, outermost first.

        ``()`` without vmap, and None if the call is not for one batch element.
        """
        return self.elements[0] if len(self._numbers) == 1 else None

    @property
    def elements(self) -> tuple[tuple[int, ...], ...]:
        """The index of each batch element of the call, in the order of the batch it gets."""
        indices = (np.unravel_index(number, self.batch) for number in self._numbers)
        return tuple(tuple(map(int, index)) for index in indices)


class CallFacts(NamedTuple):
    """What is known about the calls of one crossing, or of one chunk of them.

    Attributes:
        first: the first call, with the batch elements of all.
        each: whether each call is for one batch element; else there is one call for all.
    """

    first: CallInfo
    each: bool

    def after(self, calls: int) -> CallFacts:
        """Return these facts when the host function has been called `calls` times."""
        return self._replace(first=dataclasses.replace(self.first, call=calls + 1))

    def cut(self, start: int, stop: int) -> CallFacts:
        """Return the facts of the calls from `start` to `stop`."""
        if not self.each:
            return self
        call, numbers = self.first.call + start, self.first._numbers[start:stop]
        return self._replace(first=dataclasses.replace(self.first, call=call, _numbers=numbers))

    def info(self, call: int) -> CallInfo:
        """Return what `call_info` returns in the call with this index."""
        return self.cut(call, call + 1).first


# Given the frame of a function that makes host calls and the frames inside it, innermost first.
Read = Callable[[FrameType, Sequence[FrameType]], CallInfo | None]
_Read = TypeVar("_Read", bound=Read)
_readers: dict[CodeType, Read] = {}


def reads_call_in(*codes: CodeType) -> Callable[[_Read], _Read]:
    """Register what reads the running call from the frames of functions that make host calls."""

    def register(read: _Read) -> _Read:
        _readers.update(zip(codes, itertools.repeat(read), strict=False))
        return read

    return register


def call_info() -> CallInfo:
    """Return which call a host function is in: its batch element, shard, device, site and number.

    Call it in a host function, on the thread that runs it. Any flavor and option will do, except
    ``compile=``: machine code cannot ask. Calls of a host function that does not ask cost nothing
    more, and asking takes a few microseconds. In a worker of an executor it tells the same;
    ``from jupyter_jaxcb import call_info`` at the top of a module keeps JAX out of the workers.

    Returns:
        A `CallInfo`.

    Raises:
        RuntimeError: outside a host call, in one of JAX's own callbacks, or on a thread that the
            host function started.

    >>> import jax, jax.numpy as jnp, jupyter_jaxcb as jaxcb
    >>> @jaxcb.debug
    ... def show(x):
    ...     print(jaxcb.call_info().index, x)
    >>> jax.block_until_ready(jax.vmap(show)(jnp.arange(2.0)))
    (0,) 0.0
    (1,) 1.0
    """
    __tracebackhide__ = True
    frame: FrameType | None = sys._getframe(1)
    inside: list[FrameType] = []
    while frame is not None:
        read = _readers.get(frame.f_code)
        found = None if read is None else read(frame, inside)
        if found is not None:
            return found
        inside.append(frame)
        frame = frame.f_back
    raise RuntimeError(
        "call_info() was called outside a host call of jupyter_jaxcb. Call it in a host function "
        "of its callbacks, not of JAX's own, on the thread that runs it, and pass what it returns "
        "to other threads."
    )
