"""Record the host calls of callbacks that were made with JAX's own API.

A program that is compiled while they are observed calls a `RecordedCall`. One that is compiled
while they are only noted calls a copy of the callback, by which `noted` finds the facts.
"""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ...recording import Aval, LoweredSite, Recorder, active, record_call, record_elements
from ..call import Proxy, is_observing
from ..errors import describe, expect_error_of_jax

_CHECKED = ("jax pure", "jax io")  # JAX checks what they return
_dtype_name = functools.cache(str)  # NumPy builds the string on every call


def listening() -> Recorder | None:
    """Return the recorder for calls of JAX's own callbacks, if any."""
    return active() if is_observing() else None


class CallCount:
    """Host calls started at one site; approximate if several threads call at once."""

    __slots__ = ("calls", "position")

    def __init__(self) -> None:
        self.calls = 0
        self.position = 0  # among the calls of the loops that vmaps have made of the program


class RecordedCall(Proxy):
    """A callback of JAX's own API in a compiled program; records every call under `fact`.

    Programs compiled during the observation keep it afterwards, when it records nothing.

    Args:
        own: the callback.
        fact: the site that calls it.
        element: the batch element that it is called for; None: it is found in each call.
    """

    __slots__ = ("count", "element", "fact")

    def __init__(
        self, own: Callable[..., Any], fact: LoweredSite, element: int | None = None
    ) -> None:
        super().__init__(own)
        self.fact = fact
        self.element = element
        count = _counts.get(fact)  # shared by all calls of a loop that is not compiled
        self.count = _counts.setdefault(fact, CallCount()) if count is None else count

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recorder = listening()
        if recorder is None:
            return self.original(*args, **kwargs)
        return self.call_observed(recorder, args, kwargs)

    def call_observed(self, recorder: Recorder, args: Any, kwargs: Any) -> Any:
        """Make a call and record it. The errors module looks for the name of this frame."""
        # Other threads read these local variables while the call runs, see `_frames`.
        lowered, host = self.fact, self.count
        host.calls = number = host.calls + 1
        start = recorder.clock()
        try:
            returned = self.original(*args, **kwargs)
            if lowered.site.flavor in _CHECKED:
                _refuse_as_jax(returned, lowered.results)
        except BaseException as error:
            element = self._record(recorder, lowered, start, recorder.clock(), describe(error))
            host.position = 0  # the program ends
            expect_error_of_jax(error, lowered, number, element)
            raise
        self._record(recorder, lowered, start, recorder.clock(), None)
        return returned

    def _record(
        self, recorder: Recorder, lowered: LoweredSite, start: int, end: int, error: str | None
    ) -> int | None:
        """Record a call; return its batch element, if it is known."""
        element = self.element
        if element is None and lowered.levels:
            element = self._next_element()
        if element is None:
            record_call(recorder, lowered, 1, start, end, error)
            return None
        failed = None if error is None else 0
        elements, stamps = np.array([element]), [start, end]
        record_elements(recorder, lowered, 1, elements, stamps, failed, error or "")
        return element

    def _next_element(self) -> int | None:
        """Return the batch element of this call, from its position in the loops around it.

        JAX puts the scan of an outer vmap inside that of an inner one, each with one call.
        """
        levels = self.fact.levels
        if self.fact.devices > 1 or any(not v.looped or v.vmap_method.unrolled for v in levels):
            return None
        size = math.prod(level.size for level in levels)
        position, self.count.position = self.count.position, (self.count.position + 1) % size
        element, inside = 0, 1
        for level in levels:
            size //= level.size
            turn, position = divmod(position, size)
            element, inside = element + turn * inside, inside * level.size
        return element


def _refuse_as_jax(returned: Any, declared: Sequence[Aval]) -> None:
    """Raise JAX's error, with its message, if JAX would refuse what its own callback returned.

    Args:
        returned: the leaves that the callback returned.
        declared: shapes and dtypes of the results.
    """
    if len(returned) != len(declared):
        raise RuntimeError(
            "Mismatched number of outputs from callback. "
            f"Expected: {len(declared)}, Actual: {len(returned)}"
        )
    for place, (value, aval) in enumerate(zip(returned, declared, strict=True)):
        array = value if hasattr(value, "shape") and hasattr(value, "dtype") else np.asarray(value)
        if tuple(array.shape) != aval.shape:
            wrong = "shape", aval.shape, tuple(array.shape)
        elif _dtype_name(array.dtype) != aval.dtype:
            wrong = "dtype", aval.dtype, _dtype_name(jax.dtypes.canonicalize_dtype(array.dtype))
        else:
            continue
        what, expected, actual = wrong
        if actual != expected:
            raise RuntimeError(
                f"Incorrect output {what} for return value #{place}: "
                f"Expected: {expected}, Actual: {actual}"
            )


_counts: weakref.WeakKeyDictionary[LoweredSite, CallCount] = weakref.WeakKeyDictionary()

# By id of the callback.
_notes: dict[int, tuple[weakref.ref[Any], LoweredSite | Callable[[], LoweredSite], int | None]] = {}


def note_call_of(callback: Any, fact: Callable[[], LoweredSite], element: int | None) -> None:
    """Remember, as long as `callback` lives, that only the site that `fact` returns calls it."""
    number = id(callback)
    reference = weakref.ref(callback, lambda _: _notes.pop(number, None))
    _notes[number] = reference, fact, element


def noted(callback: Any) -> RecordedCall | None:
    """Return a recorded replacement for `callback`; None if it was not noted."""
    number = id(callback)
    reference, fact, element = _notes.get(number, (None, None, None))
    if reference is None or fact is None or reference() is not callback:
        return None
    if not isinstance(fact, LoweredSite):
        fact = fact()
        _notes[number] = reference, fact, element
    return RecordedCall(callback, fact, element)
