"""The one function that XLA calls for every compiled callback.

XLA's custom calls are registered by name, for ever. So there is a single one, which finds the
machine code to run in the *block* of its call site: words in memory whose address is an attribute
of the custom call. A cell that runs again only changes the block. It has no addresses of this
process, so numba can cache it.

The layout of what XLA passes is that of ``xla/ffi/api/c_api.h`` in jaxlib, as words of 8 bytes.
"""

from __future__ import annotations

import ctypes
from typing import Any

import jax
import numpy as np
from numba import cfunc, njit, types

from . import _failure
from ._native import (
    add,
    address_of,
    call_2,
    call_4,
    call_5,
    cycles,
    forever,
    publish,
    words,
)

TARGET = "jaxcb_compiled_call"
# Words of XLA_FFI_CallFrame.
EXTENSION, API, ARGUMENTS, RESULTS, ATTRIBUTES = 1, 2, 9, 14, 20
ERROR_CREATE = 6  # word of XLA_FFI_Api
DATA, RANK, SIZES = 3, 4, 5  # words of XLA_FFI_Buffer
_METADATA = 1  # type of the extension that asks for the version of the API
_API_VERSION = 1 << 32  # major 0, minor 1: the oldest that every supported jaxlib accepts
# Words of a block; those of the loops follow, see `_block`.
# `MADE` counts host calls: a crossing adds `ADDED` before them, but with a mask, the kernel counts.
# `NOTE` is 0, or the address of what records a crossing with a mask. `SINCE` is the cycle counter
# when the recorded crossing began that is running; of several threads, the one that began last.
KERNEL, VERSION, NUMBER, MADE, ADDED, LOST, LOST_CYCLES, CALLS, INNER, OUTER_LEVELS = range(10)
NOTE, SINCE, LOG, RESOLVE, FAIL, FALLBACK, LEVELS = range(10, 17)
# Words of the head of the log, and of each of its rows.
ON, CLAIMED, COLLECTED, ROWS = range(4)
BLOCK, RAN, START, END = range(4)  # block number, version, cycles; END is 0 until it is complete
ROW_WORDS = 4
LAST_ROW = 2**20 - 1  # number of rows, less one
CAPACITY = 2**20 - 1_024  # rows in use; the rest is for threads that claim a row at once
# Why a kernel failed, in the low bits of what it returns; the rest is the batch element.
WHY_BITS = 2
RAISED, NOT_FITTING, OTHER_SHAPE = 1, 2, 3
NOT_COMPILED = -1


def _cached(decorator: Any, *signature: Any) -> Any:
    """Return a decorator of numba that uses its cache, if there is a folder for it."""

    def compiling(function: Any) -> Any:
        try:
            return decorator(*signature, cache=True)(function)
        except RuntimeError:  # neither the package's folder nor the user's can be written to
            return decorator(*signature)(function)

    return compiling


_to_machine_code = _cached(cfunc, types.int64(types.int64))


@_cached(njit)
def _failed(frame: Any, block: Any, status: Any, start: Any) -> Any:
    """Return the address of the XLA_FFI_Error for a call that failed."""
    site = words(block)
    error = call_4(site[FAIL], frame, block, status, start)
    if error == 0:  # it was interrupted
        error = call_2(words(words(frame)[API])[ERROR_CREATE], site[FALLBACK], 0)
    return error


@_cached(njit)
def _describe(call: Any) -> Any:
    """Write the version of the API if XLA requests it; return whether it did."""
    if call[EXTENSION] == 0:
        return False
    extension = words(call[EXTENSION])
    if (extension[1] & 0xFFFFFFFF) != _METADATA:
        return False
    metadata = words(extension[3])
    metadata[3] = _API_VERSION
    metadata[4] = 0  # no traits
    return True


@_cached(njit)
def _first_attribute(call: Any) -> Any:
    return words(words(words(call[ATTRIBUTES])[0])[1])[0]


@_cached(njit)
def _run(frame: Any, block: Any) -> Any:
    """Run the kernel of a block, and log it."""
    site = words(block)
    kernel = site[KERNEL]
    if kernel == 0:
        kernel = call_2(site[RESOLVE], frame, block)
        if kernel == 0:
            return _failed(frame, block, NOT_COMPILED, cycles())
    site[MADE] += site[ADDED]
    log = words(site[LOG])
    if log[ON] == 0:
        status = call_2(kernel, frame, block)
        return 0 if status == 0 else _failed(frame, block, status, 0)
    version = site[VERSION]
    start = site[SINCE] = cycles()
    status = call_2(kernel, frame, block)
    end = cycles()
    site[SINCE] = 0
    if status != 0:
        return _failed(frame, block, status, start)
    if site[NOTE] != 0:
        return call_5(site[NOTE], frame, block, version, start, end)
    if log[CLAIMED] - log[COLLECTED] >= CAPACITY:
        add(block + 8 * LOST, 1)
        add(block + 8 * LOST_CYCLES, end - start)
        return 0
    row = log[ROWS] + (add(site[LOG] + 8 * CLAIMED, 1) & LAST_ROW) * (8 * ROW_WORDS)
    fields = words(row)
    fields[BLOCK] = site[NUMBER]
    fields[RAN] = version
    fields[START] = start
    publish(row + 8 * END, end)
    return 0


# numba's cache does not see changes of the intrinsics in `_native`.
@_to_machine_code
def _handle(frame: Any) -> Any:
    call = words(frame)
    return 0 if _describe(call) else _run(frame, _first_attribute(call))


@_cached(njit)
def read_cycles() -> Any:
    """Return the cycle counter."""
    return cycles()


rows = np.zeros((LAST_ROW + 1, ROW_WORDS), np.int64)
rows.fill(0)  # else the first call that writes to a page waits for it
head = np.array([0, 0, 0, address_of(rows)], np.int64)
forever(rows, head, _handle)  # a handler may be using them
_capsule = jax.ffi.pycapsule(ctypes.cast(_handle.address, ctypes.c_void_p))
jax.ffi.register_ffi_target(TARGET, _capsule, platform="cpu")

# The words `LOG` to `FALLBACK` of every block.
ADDRESSES = address_of(head), _failure.RESOLVE, _failure.FAIL, _failure.FALLBACK
