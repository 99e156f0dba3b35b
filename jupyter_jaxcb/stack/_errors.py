"""The live exceptions of host functions, and the way back to them from what XLA reports."""

from __future__ import annotations

import collections
import itertools
import re
import threading

from ..recording import LoweredSite

# Exceptions kept, of each thread that raised them: each keeps its traceback, and with it the
# frames' arrays, alive. By thread, so that nobody's is pushed out before he has looked at it.
KEPT = 16
KEPT_IN_ALL = 256

_kept: dict[int, tuple[BaseException, str]] = {}  # and what XLA was told
_raised_by: collections.OrderedDict[int, int] = collections.OrderedDict()  # number: thread
_numbers = itertools.count(1)
_lock = threading.Lock()
_MARK = re.compile(r"; jaxcb host error (\d+)\]")


class HostCallError(RuntimeError):
    """What XLA is told when a host function raised; `host_error` finds the exception itself.

    Attributes:
        number: of the error, among all of this process.
    """

    number = 0


def explain(
    error: BaseException, lowered: LoweredSite, call: int, lane: int | None
) -> HostCallError:
    """Keeps `error`, with a note on where it happened, and returns what XLA is told instead.

    Args:
        error: what the host function raised, or what is wrong with its answer.
        lowered: the site.
        call: the number of the host call, among all of the host function.
        lane: of a looped vmap.
    """
    operands, _ = lowered.host_avals()
    site = lowered.site
    arguments = ", ".join(map(str, operands)) or "no arguments"
    places = [f"in call {call:,}"]
    if lane is not None:
        places.append(f"in lane {lane}")
    if lowered.shard is not None:
        device = f" ({lowered.device})" if lowered.device else ""
        places.append(f"on shard {lowered.shard}{device}")
    note = (
        f"raised by the {site.flavor} callback {site.function}, bound at {site.where}, "
        f"{', '.join(places)}, called with {arguments}"
    )
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
    number = next(_numbers)
    text = f"{describe(error)} [{note}; jaxcb host error {number}]"
    with _lock:
        _kept[number], _raised_by[number] = (error, text), threading.get_ident()
        own = [n for n, thread in _raised_by.items() if thread == threading.get_ident()]
        for old in own[:-KEPT] or list(_raised_by)[:-KEPT_IN_ALL]:
            del _kept[old], _raised_by[old]
    told = HostCallError(text)
    told.number = number
    return told


def failed_elsewhere(number: int) -> HostCallError:
    """What the other devices of a program are told of the error `number`."""
    with _lock:
        _, text = _kept.get(number, (None, "a host function failed in another process"))
    return HostCallError(text)


def describe(error: BaseException) -> str:
    """``ValueError: no luck``; also of an exception that cannot say what it is."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception as broken:
        return f"{type(error).__name__}: <its message raised {type(broken).__name__}>"


def host_error(error: BaseException | None, *, chained: bool = True) -> BaseException | None:
    """The exception a host function raised, given the one JAX made of it.

    Args:
        error: any exception caught around a JAX computation, or None.
        chained: look at its causes too, not at `error` alone.

    Returns:
        The original exception with its own traceback; None if no callback of ours raised it
        (or more than 16 others failed since on its thread).

    >>> import jax, numpy as np, jupyter_jaxcb as jaxcb
    >>> def boom(x):
    ...     raise ValueError("no luck")
    >>> f = jax.jit(lambda x: jaxcb.pure_callback(boom, x, x))
    >>> try:
    ...     f(np.float32(1)).block_until_ready()
    ... except Exception as error:
    ...     print(repr(jaxcb.host_error(error)))
    ValueError('no luck')
    """
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        marks = _MARK.findall(describe(error))
        with _lock:
            if any(error is kept for kept, _ in _kept.values()):
                return error
            # The last one: an earlier mark stands in the message of the host function's exception.
            if marks and int(marks[-1]) in _kept:
                return _kept[int(marks[-1])][0]
        error = error.__cause__ if chained else None
    return None
