"""One crossing: arrays in, host calls, result check, arrays out; the row, or the error.

No JAX code runs here, no lock is held while user code runs, and no array is kept.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from ..recording import on_one_line
from ._recording import SiteRecord, active


def crossing(
    callback: Any, record: SiteRecord, result_avals: Sequence[Any]
) -> Callable[..., tuple[np.ndarray, ...]]:
    """Build the function that XLA calls, which makes one host call for each batch element.

    Everything that does not depend on the arrays is decided here, not during a call.

    Args:
        callback: the host function and its trees.
        record: the site, whose shapes are those of one call.
        result_avals: the results of the crossing, with all batch axes in front.
    """
    function, site = callback.function, record.site
    levels = record.levels[::-1]  # outermost first, as the axes are
    looped = bool(levels)
    batch = tuple(level.size for level in levels)
    axes = [
        [n for n, level in enumerate(levels) if level.batched[i]]
        for i in range(len(record.operands))
    ]
    outer = [(tuple(y.shape), np.dtype(y.dtype)) for y in result_avals]
    expected = [(y.shape, np.dtype(y.dtype)) for y in record.results]
    unflatten, flatten = callback.in_tree.unflatten, callback.out_tree.flatten_up_to
    elements = list(np.ndindex(batch))

    def cross(*operands: np.ndarray) -> tuple[np.ndarray, ...]:
        recorder = active()
        stamps = [] if recorder is None else [recorder.clock()]
        arrays = [np.empty(shape, dtype) for shape, dtype in outer]
        try:
            for element in elements:
                leaves = (
                    x[tuple(element[n] for n in axis)] if axis else x
                    for x, axis in zip(operands, axes, strict=True)
                )
                returned = function(*unflatten(leaves))
                for array, leaf, declared in zip(
                    arrays, flatten(returned) if arrays else (), expected, strict=True
                ):
                    array[element] = _fitting(leaf, *declared, site.function)
                if recorder is not None:
                    stamps.append(recorder.clock())
        except BaseException as error:
            if recorder is not None:
                stamps.append(recorder.clock())
                recorder.called(record, stamps, _words(error), looped)
            raise _kept(error, site) from None
        if recorder is not None:
            recorder.called(record, stamps, looped=looped)
        return tuple(arrays)

    return cross


def _fitting(leaf: Any, shape: tuple[int, ...], dtype: np.dtype, function: str) -> np.ndarray:
    """Return a result as declared; raise TypeError if it has another shape or kind of dtype."""
    array = np.asarray(leaf)
    fits = array.shape == shape and np.can_cast(array.dtype, dtype, "same_kind")
    if fits and dtype.kind in "iu":  # an integer that does not fit would wrap around
        fits = bool((array.astype(dtype) == array).all())
    if not fits:
        raise TypeError(
            f"{function} returned {array.dtype}{list(array.shape)}, but declares "
            f"{dtype}{list(shape)}. Change result=, or return that."
        )
    return array


class HostCallError(RuntimeError):
    """What is raised into XLA; its message leads `host_error` to the user's exception."""


_kept_errors: dict[int, BaseException] = {}
_numbers = itertools.count(1)
_MARK = re.compile(r"jaxcb skeleton error (\d+)\]")
KEPT = 16  # an exception keeps its traceback alive, and with it arrays


def _kept(error: BaseException, site: Any) -> HostCallError:
    number = next(_numbers)
    _kept_errors[number] = error
    _kept_errors.pop(number - KEPT, None)
    note = f"raised by the {site.flavor} callback {site.function}, {site.file}:{site.line}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    return HostCallError(f"{_words(error)} [jaxcb skeleton error {number}]")


def _words(error: BaseException) -> str:
    """Return the class and the message, in which XLA finds no character that ends it."""
    try:
        message = str(error)
    except Exception:
        message = "its message cannot be read"
    return on_one_line(f"{type(error).__name__}: {message}")


def name_of(function: Any) -> str:
    """Return the name of a host function, or of the class of a callable object."""
    return str(getattr(function, "__name__", type(function).__name__))


def host_error(error: BaseException) -> BaseException | None:
    """Return the exception of a host function behind an error that JAX raised, if there is one."""
    is_ours = isinstance(error, (jax.errors.JaxRuntimeError, HostCallError))
    marks = _MARK.findall(str(error)) if is_ours else []
    # The last one: the user's message may quote an earlier error.
    return _kept_errors.get(int(marks[-1])) if marks else None
