"""Memory of XLA's that a host function borrows for one call: which, and that it gives it back."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...lowering import bits

# `sys.getrefcount` of an object that only a list refers to.
_ALONE = next(map(sys.getrefcount, [object()]))


class RetainedBufferWarning(UserWarning):
    """A buffer callback kept one of its arrays after it returned.

    The array borrows memory that XLA reuses for other values. The message names the callback and
    the argument; keep a copy instead (`numpy.ndarray.copy`).

    >>> import numpy as np, jupyter_jaxcb as jaxcb
    >>> kept = []
    >>> @jaxcb.buffer(result="x")
    ... def double(out, x):
    ...     kept.append(x.copy())  # not x itself
    ...     out[...] = 2 * x
    >>> double(np.float32([1, 2]))
    Array([2., 4.], dtype=float32)
    """


class Buffer(np.ndarray):
    """A NumPy array with what `jax.experimental.buffer_callback.Buffer` has besides."""

    __hash__: Any = object.__hash__  # that of the object, as JAX's; arrays have none

    @property
    def writeable(self) -> bool:
        """Whether the host function may write to it: an output, and not an argument."""
        return self.flags.writeable

    def __dlpack__(  # pyright: ignore[reportIncompatibleMethodOverride]  # by position too, as JAX's
        self,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Export the memory, an argument's too, by the DLPack protocol.

        DLPack before 1.0 cannot say that memory is read-only. NumPy refuses an argument to who
        asks for that, JAX exports it.

        Args:
            stream: not used: no stream writes to a CPU's memory.
            max_version: the newest DLPack that the consumer reads; None: before 1.0.
            dl_device: the device that it asks for; None: the CPU.
            copy: whether to copy; None: only if the device needs it.

        Raises:
            BufferError: if NumPy cannot export the dtype or to that device. Export bfloat16 and
                the like as `array.view(np.uint16)`.
        """
        asked = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        flagged = max_version is not None and max_version >= (1, 0)
        source = np.asarray(self) if flagged or self.writeable else np.asarray(_Writeable(self))
        # NumPy 2.0 has none of these parameters.
        return source.__dlpack__(**{key: it for key, it in asked.items() if it is not None})


class _Writeable:
    """The memory of an array, as if it could be written to; keeps the array alive."""

    def __init__(self, array: np.ndarray) -> None:
        interface = array.__array_interface__
        self.__array_interface__ = interface | {"data": (interface["data"][0], False)}
        self._array = array


def borrow(buffers: Sequence[Any], inputs: int) -> list[np.ndarray]:
    """Return arrays that share the memory of `buffers`; the first `inputs` are read-only."""
    arrays = [buffer.__array__() for buffer in buffers]
    for array in arrays[:inputs]:
        array.setflags(write=False)
    return arrays


def as_buffers(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return views of `arrays` that are `Buffer`s."""
    return [array.view(Buffer) for array in arrays]


def still_held(arrays: list[Any]) -> list[int]:
    """Return the indices of `arrays` that something besides that list refers to.

    A view refers to its array, or to the array that this one is a view of.
    """
    bases = [array.base for array in arrays]
    counts = zip(map(sys.getrefcount, arrays), map(sys.getrefcount, bases), strict=True)
    return [
        n
        for n, (own, of_base) in enumerate(counts)
        if own > _ALONE or (isinstance(bases[n], np.ndarray) and of_base > _ALONE + 1)
    ]


def reclaim(
    arrays: list[np.ndarray], held: Sequence[int], names: Sequence[str], callback: str, code: Any
) -> None:
    """Warn about arrays that the host function kept, and copy their data out of XLA's memory.

    Existing views of a kept array cannot be found, so they still point into XLA's memory.

    Args:
        arrays: the arrays of the call.
        held: the indices of those that it kept, see `still_held`.
        names: their names in the message.
        callback: the name of the host function.
        code: its code object, or None.
    """
    for n in held:
        _own(arrays[n])
    which = " and ".join(names[n] for n in held)
    views = "x[1:], np.asarray(x)" if isinstance(arrays[held[0]], Buffer) else "x[1:]"
    warnings.warn_explicit(
        f"buffer callback {callback} kept {which} after it returned, but XLA reuses that memory. "
        "Keep a copy instead: x.copy(). The array was copied this time; existing views of it "
        f"({views}) are invalid.",
        RetainedBufferWarning,
        getattr(code, "co_filename", callback),
        getattr(code, "co_firstlineno", 1),
    )


def rescue(error: BaseException | None, arrays: Sequence[np.ndarray]) -> None:
    """Copy `arrays`, and the views of them in the frames of `error`, out of XLA's memory.

    A traceback keeps the frames of the failed call alive, and a debugger shows their variables.
    """
    views = [view for view in _locals(error) if any(np.may_share_memory(view, x) for x in arrays)]
    for array in (*views, *arrays):
        _own(array)


def _own(array: np.ndarray) -> None:
    """Replace the memory of `array` by a copy, in place."""
    state: Any = (1, array.shape, array.dtype, False, array.tobytes())  # version, ..., order
    array.__setstate__(state)


def _locals(error: BaseException | None) -> Iterator[np.ndarray]:
    """Yield the arrays among the local variables of a traceback's frames."""
    trace = None if error is None else error.__traceback__
    while trace is not None:
        for value in trace.tb_frame.f_locals.values():
            if isinstance(value, np.ndarray):
                yield value
        trace = trace.tb_next


def check_borrowable(name: str, avals: Sequence[Any]) -> None:
    """Raise TypeError for PRNG keys, and for dtypes narrower than a byte."""
    __tracebackhide__ = True
    for aval in avals:
        if jnp.issubdtype(aval.dtype, jax.dtypes.extended):
            raise TypeError(
                f"cannot pass {aval.dtype} to the buffer callback {name}: NumPy has no PRNG keys. "
                "Pass the key's data: jax.random.key_data(key)."
            )
        if bits(aval.dtype) < 8:
            wider = "int8" if jnp.issubdtype(aval.dtype, jnp.integer) else "float16"
            raise TypeError(
                f"cannot pass {aval.dtype} to the buffer callback {name}: XLA packs several of "
                f"these numbers into a byte, NumPy does not. Convert to {wider}, or register it as "
                "pure."
            )


def check_aliases(
    aliases: Iterable[tuple[int, int]], operands: Sequence[Any], results: Sequence[Any]
) -> None:
    """Raise ValueError for an operand and a result, given by index, that cannot share memory."""
    __tracebackhide__ = True
    for operand, result in aliases:
        pair = f"input_output_aliases contains the mapping '{operand}:{result}'"
        for what, index, there in (("input", operand, operands), ("output", result, results)):
            if not 0 <= index < len(there):
                raise ValueError(
                    f"{pair} with {what} index {index} outside the range [0, {len(there)}). Use "
                    "the index among the flat arrays."
                )
        given, written = operands[operand], results[result]
        if (given.shape, given.dtype) != (written.shape, written.dtype):
            raise ValueError(
                f"{pair} referring to an input with abstract value {given.str_short()} and an "
                f"output with a different abstract value {written.str_short()}. Aliased arrays "
                "need the same shape and dtype."
            )
